"""Every dataset: files made here by other means, read by kilter; damaged ones, which are named."""

import gzip
import io
import json
import struct

import numpy as np
import pytest
from onnx import TensorProto, helper
from PIL import Image

import kilter
from conftest import DATA, make_model
from kilter.data import Loader


def picture(seed: int, height: int = 8, width: int = 9) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def png(image: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "png")
    return stream.getvalue()


def samples(dataset, *steps, **options):
    """(inputs without a batch axis, label) of every sample."""
    return [([x[0] for x in inputs], labels[0]) for inputs, labels in Loader(dataset, steps, **options)]


# Image files


@pytest.fixture
def classes(tmp_path):
    """Two folders of images; image i is picture(i)."""
    for name in ["b/2.png", "b/deep/3.png", "a/0.png", "a/1.png", ".hidden/9.png"]:
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(picture(int(path.stem))))
    (tmp_path / "images" / "a" / "notes.txt").write_text("no image")
    return tmp_path / "images"


def test_class_folders(classes):
    found = samples({"ImageFolder": {"root": classes}})
    assert len(found) == 4
    for number, (inputs, label) in enumerate(found):
        np.testing.assert_array_equal(inputs[0], picture(number))
        assert label["label"].dtype == np.int64
        assert label["label"] == (0 if number < 2 else 1)


def test_flat_folder_and_lists(classes, tmp_path):
    flat = classes / "a"
    assert [label for _, label in samples({"ImageFolder": {"root": flat}})] == [{}, {}]
    (tmp_path / "list.txt").write_text("1.png 7\r\n\n0.png\t8\n")
    found = samples(
        {"ImagenetRaw": {"data_path": flat, "image_list": tmp_path / "list.txt"}}, {"LabelShift": 1}
    )
    assert [int(label["label"]) for _, label in found] == [6, 7]
    np.testing.assert_array_equal(found[0][0][0], picture(1))
    (flat / "val.txt").write_text("5\n6\n")
    for name in ("ImagenetRaw", "Imagenet"):
        found = samples({name: {"data_path": flat}}, {"LabelShift": {"label_shift": -1}})
        assert [int(label["label"]) for _, label in found] == [6, 7]
    for text, word in [
        ("0.png x", "line 1"),
        ("0.png 1\n3", "others do not"),
        ("no.png 1", "no.png"),
        ("", "no labels"),
    ]:
        (flat / "val.txt").write_text(text)
        with pytest.raises(kilter.Error, match=word):
            Loader({"ImagenetRaw": {"data_path": flat}})


def test_damaged_images_stop_or_are_counted(classes):
    (classes / "a" / "1.png").write_bytes(png(picture(1))[:60])
    (classes / "b" / "2.png").write_text("text")
    with pytest.raises(kilter.Error, match=r"a/1.png: a damaged PNG"):
        samples({"ImageFolder": {"root": classes}})
    loader = Loader({"ImageFolder": {"root": classes}}, batch_size=2, count_errors=True)
    batches = list(loader)
    assert [len(labels) for _, labels in batches] == [2]
    assert len(loader.errors) == 2 and "1.png" in loader.errors[0] and "2.png" in loader.errors[1]


# Records


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def field(number: int, content: bytes) -> bytes:
    size, prefix = len(content), b""
    while size >= 128:
        prefix += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + prefix + bytes([size]) + content


def example(**features) -> bytes:
    """A serialized tf.train.Example; __ in names stands for a slash."""
    entries = b""
    for name, value in features.items():
        if isinstance(value, bytes):
            feature = field(1, field(1, value))
        elif isinstance(value, int):
            feature = field(3, field(1, bytes([value])))
        else:
            feature = field(2, field(1, struct.pack(f"<{len(value)}f", *value)))
        entries += field(1, field(1, name.replace("__", "/").encode()) + field(2, feature))
    return field(1, entries)


def image_example(number: int) -> bytes:
    return example(image__encoded=png(picture(number)), image__class__label=number + 1)


def test_tfrecords(tmp_path):
    for shard in range(2):
        content = b"".join(tfrecord(image_example(2 * shard + i)) for i in range(2))
        (tmp_path / f"val-0000{shard}-of-00002").write_bytes(content)
    (tmp_path / "README").write_text("not a shard")
    for name, root in [("ImageRecord", tmp_path), ("TFRecordDataset", tmp_path / "val-00000-of-00002")]:
        found = samples({name: {"root": root}}, "ParseDecodeImagenet", {"LabelShift": 1})
        assert len(found) == (4 if name == "ImageRecord" else 2)
        for number, (inputs, label) in enumerate(found):
            np.testing.assert_array_equal(inputs[0], picture(number))
            assert label["label"] == number


@pytest.mark.parametrize("name", ["COCORecord", "VOCRecord"])
def test_boxes_of_tfrecords(tmp_path, name):
    sides = {"ymin": [0.5], "xmin": [0.0], "ymax": [1.0], "xmax": [0.25]}
    record = example(
        image__encoded=png(picture(0, 8, 16)),
        image__source_id=b"42",
        image__object__class__label=3,
        image__object__class__text=b"cat",
        image__object__is_crowd=1,
        image__object__area=[7.5],
        **{f"image__object__bbox__{side}": value for side, value in sides.items()},
    )
    (tmp_path / "a.tfrecord").write_bytes(tfrecord(record))
    [(_, label)] = samples({name: {"root": tmp_path}})
    np.testing.assert_array_equal(label["boxes"], [[4, 0, 8, 4]])
    np.testing.assert_array_equal(label["classes"], [3])
    assert label["image_id"] == 42
    assert label["class_names"].tolist() == ["cat"]
    assert (label["iscrowd"], label["difficult"], label["area"]) == (1, 0, 7.5)
    np.testing.assert_array_equal(label["image_size"], [8, 16])


def test_damaged_tfrecords_are_named(tmp_path):
    records = [tfrecord(image_example(i)) for i in range(4)]
    path = tmp_path / "a.tfrecord"
    for position, word in [(30, "checksum of its content"), (9, "checksum of its length")]:
        damaged = bytearray(records[1])
        damaged[position] ^= 1
        path.write_bytes(records[0] + damaged + records[2] + records[3])
        loader = Loader({"ImageRecord": {"root": path}}, count_errors=True)
        # Behind a wrong length nothing can be found.
        assert len(list(loader)) == (3 if position == 30 else 1)
        assert len(loader.errors) == 1
        assert "a.tfrecord: record 1" in loader.errors[0] and word in loader.errors[0]
        with pytest.raises(kilter.Error, match="record 1"):
            list(Loader({"ImageRecord": {"root": path}}))
    path.write_bytes(b"".join(records)[:-5])
    with pytest.raises(kilter.Error, match="record 3"):
        list(Loader({"ImageRecord": {"root": path}}))
    path.write_bytes(b"this is not a TFRecord file")
    with pytest.raises(kilter.Error, match="is this a TFRecord file"):
        Loader({"ImageRecord": {"root": path}})
    for content, word in [
        (b"\xff\xff", "Example"),
        (example(x=b"y"), "image/encoded"),
        (b"", "image/encoded"),
    ]:
        path.write_bytes(tfrecord(content))
        with pytest.raises(kilter.Error, match=word):
            list(Loader({"ImageRecord": {"root": path}}))


MAGIC = struct.pack("<I", 0xCED7230A)


def recordio(content: bytes) -> bytes:
    """As MXNet writes it: split where the content holds the magic number at a multiple of 4."""
    parts, start = [], 0
    for position in range(0, len(content) - 3, 4):
        if content[position : position + 4] == MAGIC:
            parts.append(content[start:position])
            start = position + 4
    parts.append(content[start:])
    result = b""
    for i, part in enumerate(parts):
        flag = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
        result += MAGIC + struct.pack("<I", flag << 29 | len(part)) + part + b"\0" * (-len(part) % 4)
    return result


def test_recordio(tmp_path):
    contents = [
        struct.pack("<IfQQ", 0, 5, 0, 0) + png(picture(0)),
        struct.pack("<IfQQ", 1, 0, 1, 0) + struct.pack("<f", 6) + png(picture(1)),
        struct.pack("<IfQQ", 2, 0, 2, 0) + struct.pack("<ff", 0.5, 7) + png(picture(2)),
        # Bytes behind an image do no harm.
        struct.pack("<IfQQ", 0, 0.5, 3, 0) + png(picture(3)) + b"\0" * 4 + MAGIC * 9 + b"\0" + MAGIC,
    ]
    for i, content in enumerate(contents):  # aligned, so that the last one is really split
        if i == 3:
            body = png(picture(3))
            contents[3] = content[:24] + body + b"\0" * (-len(body) % 4) + MAGIC * 3 + b"tail" + MAGIC
    records = [recordio(content) for content in contents]
    path = tmp_path / "a.rec"
    path.write_bytes(b"".join(records))
    for indexed in (False, True):
        if indexed:
            offsets = np.cumsum([0, *map(len, records)])
            (tmp_path / "a.idx").write_text("".join(f"{i}\t{offsets[i]}\n" for i in (3, 1, 0, 2)))
        order = (3, 1, 0, 2) if indexed else (0, 1, 2, 3)
        found = samples({"RecordIO": {"root": path}})
        assert len(found) == 4
        for number, (inputs, label) in zip(order, found, strict=True):
            np.testing.assert_array_equal(inputs[0], picture(number))
            np.testing.assert_array_equal(label["label"], [5, 6, [0.5, 7], [0.5]][number])
            assert label["label"].dtype == (np.int64 if number < 2 else np.float32)


def test_damaged_recordio_is_named(tmp_path):
    records = [recordio(struct.pack("<IfQQ", 0, i, 0, 0) + png(picture(i))) for i in range(3)]
    path = tmp_path / "a.rec"
    path.write_bytes(records[0] + b"\0" + records[1][1:] + records[2])
    loader = Loader({"RecordIO": {"root": path}}, count_errors=True)
    assert len(list(loader)) == 1
    assert len(loader.errors) == 1 and "record 1: there is no magic number" in loader.errors[0]
    path.write_bytes(b"".join(records)[:-9])
    with pytest.raises(kilter.Error, match="record 2"):
        list(Loader({"RecordIO": {"root": path}}))
    (tmp_path / "other.idx").write_text("0\t0\n1\t99999999999\n")
    with pytest.raises(kilter.Error, match="record 1"):
        list(Loader({"RecordIO": {"root": path, "idx": tmp_path / "other.idx"}}))
    path.write_bytes(recordio(struct.pack("<IfQQ", 1 << 30, 0, 0, 0) + png(picture(0))))
    with pytest.raises(kilter.Error, match="labels"):
        list(Loader({"RecordIO": {"root": path}}))


# Arrays


def test_numpy_files(tmp_path):
    x, y = np.arange(12, dtype=np.float32).reshape(3, 2, 2), np.array([4, 5, 6])
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "both.npz", a=x, b=-x, labels=y)
    for dataset in (
        {"root": tmp_path / "x.npy", "labels": tmp_path / "y.npy"},
        {"root": tmp_path / "both.npz"},
    ):
        found = samples({"NumPy": dataset})
        assert len(found) == 3
        for i, (inputs, label) in enumerate(found):
            np.testing.assert_array_equal(inputs[0], x[i])
            assert label["label"] == y[i]
    np.testing.assert_array_equal(found[2][0][1], -x[2])
    folder = tmp_path / "folder"
    folder.mkdir()
    for i in range(3):
        np.save(folder / f"{i}.npy", x[i])
    (tmp_path / "labels.txt").write_text("4\n5\n6\n")
    found = samples({"NumPy": {"root": folder, "labels": tmp_path / "labels.txt"}})
    assert [int(label["label"]) for _, label in found] == [4, 5, 6]
    (folder / "2.npy").write_bytes((folder / "2.npy").read_bytes()[:-3])
    with pytest.raises(kilter.Error, match=r"2\.npy"):
        samples({"NumPy": {"root": folder}})


def test_arrays_come_by_the_names_of_the_inputs(tmp_path):
    model = make_model(
        [helper.make_node("Sub", ["q", "p"], ["y"])],
        [("q", TensorProto.FLOAT, ["n", 2]), ("p", TensorProto.FLOAT, ["n", 2])],
        [("y", TensorProto.FLOAT, ["n", 2])],
    )
    np.savez(tmp_path / "x.npz", p=np.zeros((2, 2), np.float32), q=np.ones((2, 2), np.float32))
    loader = Loader({"NumPy": {"root": tmp_path / "x.npz"}}, model=kilter.load(model.SerializeToString()))
    for inputs, _ in loader:
        assert [x.tolist() for x in inputs] == [[[1, 1]], [[0, 0]]]


@pytest.mark.parametrize("name, folder", [("MNIST", "MNIST/raw"), ("FashionMNIST", ".")])
def test_idx(tmp_path, name, folder):
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 5), np.uint8)
    where = tmp_path / folder
    where.mkdir(parents=True, exist_ok=True)
    header = bytes([0, 0, 8, 3]) + struct.pack(">III", 3, 4, 5)
    (where / "t10k-images-idx3-ubyte").write_bytes(header + images.tobytes())
    (where / "t10k-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    found = samples({name: {"root": tmp_path, "train": False, "download": True}})
    assert [int(label["label"]) for _, label in found] == [7, 8, 9]
    np.testing.assert_array_equal(np.stack([inputs[0][:, :, 0] for inputs, _ in found]), images)
    with pytest.raises(kilter.Error, match="train-images"):
        Loader({name: {"root": tmp_path, "train": True}})
    packed = gzip.compress(header + images.tobytes())
    (where / "train-images-idx3-ubyte.gz").write_bytes(packed)
    (where / "train-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    found = samples({name: {"root": tmp_path, "train": True}})
    np.testing.assert_array_equal(found[2][0][0][:, :, 0], images[2])
    for damaged, word in [(packed[:-9], "truncated"), (packed[:20] + b"xxxx" + packed[24:], "train-images")]:
        (where / "train-images-idx3-ubyte.gz").write_bytes(damaged)
        with pytest.raises(kilter.Error, match=word):
            Loader({name: {"root": tmp_path, "train": True}})
    (where / "t10k-images-idx3-ubyte").write_bytes(header + images.tobytes()[:-1])
    with pytest.raises(kilter.Error, match="t10k-images-idx3-ubyte: 3x4x5 says 60 bytes, the file holds 59"):
        Loader({name: {"root": tmp_path}})


@pytest.mark.parametrize(
    "name, folder, labels", [("CIFAR10", "cifar-10-batches-bin", 1), ("CIFAR100", "cifar-100-binary", 2)]
)
def test_cifar(tmp_path, name, folder, labels):
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 32, 32), np.uint8)
    records = [bytes([9, i][-labels:]) + image.tobytes() for i, image in enumerate(images)]
    (tmp_path / folder).mkdir()
    test = tmp_path / folder / ("test_batch.bin" if labels == 1 else "test.bin")
    test.write_bytes(b"".join(records))
    for root in (tmp_path, tmp_path / folder):
        found = samples({name: {"root": root}})
        assert [int(label["label"]) for _, label in found] == [0, 1, 2, 3]
        for i, (inputs, _) in enumerate(found):
            np.testing.assert_array_equal(inputs[0], images[i].transpose(1, 2, 0))
    with pytest.raises(kilter.Error, match="kilter downloads nothing"):
        Loader({name: {"root": tmp_path, "train": True}})
    test.write_bytes(b"".join(records)[1:])
    with pytest.raises(kilter.Error, match="whole number of records"):
        Loader({name: {"root": tmp_path}})


def test_dummies():
    dataset = {
        "dummy": {"shape": [[5, 3, 4], [5, 2]], "low": [0, -3], "high": [1, 3], "dtype": ["float32", "int8"]}
    }
    found = samples(dataset)
    assert len(found) == 5
    for inputs, label in found:
        assert [x.shape for x in inputs] == [(3, 4), (2,)]
        assert [x.dtype for x in inputs] == [np.float32, np.int8]
        assert (inputs[0] >= 0).all() and (inputs[0] < 1).all() and (np.abs(inputs[1]) <= 3).all()
        assert label["label"] == 0
    assert (found[0][0][0] != found[1][0][0]).any()
    np.testing.assert_array_equal(found[3][0][0], samples(dataset)[3][0][0])
    values = np.concatenate([x[0].ravel() for x, _ in samples({"dummy": {"shape": [10, 1000]}})])
    assert abs(values.mean() + 0.5) < 3 and abs(values.std() - 255 / 12**0.5) < 2

    found = samples({"dummy_v2": {"input_shape": [3, 4], "label_shape": [2]}})
    assert len(found) == 100
    assert found[0][0][0].shape == (3, 4) and found[0][1]["label"].shape == (2,)
    with pytest.raises(kilter.Error, match="number of samples"):
        Loader({"dummy": {"shape": [[5, 3], [4, 3]]}})
    with pytest.raises(kilter.Error, match="fewer elements"):
        Loader({"dummy": {"shape": [1 << 20, 1 << 20]}})


def test_coco(tmp_path):
    (tmp_path / "val2017").mkdir()
    (tmp_path / "annotations").mkdir()
    (tmp_path / "val2017" / "7.png").write_bytes(png(picture(7)))
    annotations = {
        "images": [{"id": 7, "file_name": "7.png"}],
        "annotations": [{"image_id": 7, "bbox": [1, 2, 3, 4], "category_id": 18, "iscrowd": 1, "area": 9}],
    }
    path = tmp_path / "annotations" / "instances_val2017.json"
    path.write_text(json.dumps(annotations))
    [(inputs, label)] = samples({"COCORaw": {"root": tmp_path}})
    np.testing.assert_array_equal(inputs[0], picture(7))
    np.testing.assert_array_equal(label["boxes"], [[2, 1, 6, 4]])
    assert (label["classes"], label["image_id"], label["iscrowd"], label["area"]) == (18, 7, 1, 9)
    path.write_text("{}")
    with pytest.raises(kilter.Error, match=r"instances_val2017\.json: not a COCO"):
        Loader({"COCORaw": {"root": tmp_path}})


# Texts

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "the",
    "cat",
    "sat",
    "##s",
    ".",
    '"',
    "cafe",
    "who",
    "?",
    "on",
    "mat",
]


@pytest.fixture
def vocabulary(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    return tmp_path / "vocab.txt"


def words(ids) -> str:
    return " ".join(VOCABULARY[i] for i in ids if i)


def test_glue(tmp_path, vocabulary):
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    (tmp_path / "dev.tsv").write_text(
        "\ufeff" + head + '1\t1\t2\tThe "cats sat.\tCAFÉ\r\n0\t3\t4\tthe\tdog\n', encoding="utf-8", newline=""
    )
    dataset = {"data_dir": tmp_path, "vocab_file": vocabulary, "task": "mrpc", "max_seq_length": 16}
    found = samples({"GLUE": dataset})
    assert [int(label["label"]) for _, label in found] == [1, 0]
    (ids, mask, types), _ = found[0]
    assert words(ids) == '[CLS] the " cat ##s sat . [SEP] cafe [SEP]'
    assert mask.tolist() == [1] * 10 + [0] * 6
    assert types.tolist() == [0] * 8 + [1] * 2 + [0] * 6
    assert words(found[1][0][0]) == "[CLS] the [SEP] [UNK] [SEP]"
    assert samples({"GLUE": dataset | {"max_seq_length": 0}})[0][0][0].shape == (128,)
    # The longer text loses its end first.
    short = samples({"GLUE": dataset | {"max_seq_length": 8}})[0][0][0]
    assert words(short) == '[CLS] the " cat ##s [SEP] cafe [SEP]'
    (tmp_path / "dev.tsv").write_text(head + "x\t1\t2\ta\tb\n")
    with pytest.raises(kilter.Error, match=r"dev\.tsv: line 2: 'x' is no label"):
        samples({"GLUE": dataset})
    (tmp_path / "dev.tsv").write_text(head + "1\t2\n")
    with pytest.raises(kilter.Error, match="line 2: 2 columns, mrpc needs 5"):
        samples({"GLUE": dataset})
    with pytest.raises(kilter.Error, match="one of mrpc"):
        samples({"GLUE": dataset | {"task": "mrcp"}})


def test_other_glue_tasks(tmp_path, vocabulary):
    for task, line, label in [
        ("sst-2", "the cat\t1", 1),
        ("cola", "x\t0\t*\tthe cat", 0),
        ("rte", "0\tthe\tcat\tnot_entailment", 1),
        ("mnli", "\t".join(["-"] * 8 + ["the", "cat", "neutral"]), 2),
        ("sts-b", "\t".join(["-"] * 7 + ["the", "cat", "3.5"]), 3.5),
    ]:
        path = tmp_path / "x.tsv"
        path.write_text(line if task == "cola" else "header\n" + line)
        [(_, found)] = samples({"GLUE": {"data_dir": path, "vocab_file": vocabulary, "task": task}})
        assert found["label"] == label, task


def test_texts_feed_inputs_by_name(tmp_path, vocabulary):
    model = make_model(
        [
            helper.make_node("Add", ["segment_ids", "input_ids"], ["y"]),
            helper.make_node("Identity", ["input_mask"], ["z"]),
        ],
        [(name, TensorProto.INT32, ["n", 12]) for name in ("segment_ids", "input_mask", "input_ids")],
        [("y", TensorProto.INT32, ["n", 12]), ("z", TensorProto.INT32, ["n", 12])],
    )
    (tmp_path / "dev.tsv").write_text("header\n1\t1\t2\tthe cat\tsat\n")
    dataset = {"GLUE": {"data_dir": tmp_path, "vocab_file": vocabulary}}
    [(inputs, _)] = samples(dataset, model=kilter.load(model.SerializeToString()))
    assert inputs[0].tolist() == [0] * 4 + [1] * 2 + [0] * 6
    assert inputs[1].tolist() == [1] * 6 + [0] * 6
    assert words(inputs[2]) == "[CLS] the cat [SEP] sat [SEP]"
    assert all(x.dtype == np.int32 for x in inputs)
    dataset["GLUE"]["max_seq_length"] = 16
    with pytest.raises(kilter.Error, match="max_seq_length asks for 16"):
        Loader(dataset, model=kilter.load(model.SerializeToString()))


def test_squad(tmp_path, vocabulary):
    context = "The “Café” cats sat on the mat. The cat sat on the mat."
    questions = [{"id": "q1", "question": "Who sat?", "answers": [{"text": "cats", "answer_start": 11}]}]
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": questions}]}]}))
    settings = {"root": path, "vocab_file": vocabulary, "max_seq_length": 16, "doc_stride": 4}
    found = samples({"SQuAD": settings})
    # 17 tokens, 10 of them fit: windows from 0, 4 and 8.
    assert len(found) == 3
    pieces = context.encode()
    best = {}
    for inputs, label in found:
        assert words(inputs[0]).startswith("[CLS] who sat ? [SEP] ")
        assert label["id"] == "q1" and label["answers"].tolist() == ["cats"] and label["context"] == context
        for i, (start, end) in enumerate(zip(label["token_start"], label["token_end"], strict=True)):
            assert (start >= 0) == (inputs[2][i] == 1 and VOCABULARY[inputs[0][i]] != "[SEP]")
            if start >= 0:
                best[start, end] = best.get((start, end), 0) + int(label["max_context"][i])
    assert set(best.values()) == {1}
    texts = [pieces[start:end].decode() for start, end in sorted(best)]
    assert texts[:8] == ["The", "“", "Café", "”", "cat", "s", "sat", "on"]
    assert len(samples({"SQuAD": settings | {"max_seq_length": 384}})) == 1
    path.write_text('{"data": [{"paragraphs": [{}]}]}')
    with pytest.raises(kilter.Error, match=r"dev\.json: not a SQuAD file"):
        Loader({"SQuAD": settings})


@pytest.mark.skipif(not (DATA / "nlp").is_dir(), reason="needs the folder nlp of KILTER_DATA")
def test_real_texts_give_the_numbers_of_windows_and_pairs():
    vocabulary = DATA / "nlp" / "bert-base-uncased-vocab.txt"
    mrpc = Loader({"GLUE": {"data_dir": DATA / "nlp" / "msr_paraphrase_test.txt", "vocab_file": vocabulary}})
    assert len(mrpc) == 1725
    assert np.mean([int(labels[0]["label"]) for _, labels in mrpc]) == pytest.approx(0.665, abs=1e-3)
    assert len(Loader({"SQuAD": {"root": DATA / "nlp" / "xquad.en.json", "vocab_file": vocabulary}})) == 1232


@pytest.mark.parametrize(
    "dataset, word",
    [
        ("ImageFoldr", "did you mean 'ImageFolder'"),
        ({"ImageFolder": {}}, "'root' is missing"),
        ({"ImageFolder": {"root": "/nowhere/at/all"}}, "/nowhere/at/all"),
        ({"ImageFolder": {"rot": "."}}, "did you mean 'root'"),
        ({"NumPy": {"root": 5}}, "expected text"),
        ({"a": {}, "b": {}}, "expected a name"),
    ],
)
def test_errors_say_what_is_wrong(dataset, word):
    with pytest.raises(kilter.Error, match=word):
        Loader(dataset)


# Tokens


def test_texts_of_ones_own_become_tokens(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "sat", "."]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n")
    tokenizer = kilter.data.Tokenizer(tmp_path / "vocab.txt")
    assert tokenizer.ids("The cats sat.") == [4, 5, 6, 7, 8]
    assert tokenizer.ids("zebra") == [1]
    found = tokenizer.encode("The cats", "sat", length=8)
    assert {name: array.tolist() for name, array in found.items()} == {
        "input_ids": [2, 4, 5, 6, 3, 7, 3, 0],
        "attention_mask": [1, 1, 1, 1, 1, 1, 1, 0],
        "token_type_ids": [0, 0, 0, 0, 0, 1, 1, 0],
    }
    # The longer text loses its end.
    assert tokenizer.encode("the the the the the the", "sat", length=8)["input_ids"].tolist() == [
        2,
        4,
        4,
        4,
        4,
        3,
        7,
        3,
    ]
    assert kilter.data.Tokenizer(tmp_path / "vocab.txt", lower_case=False).ids("The cat") == [1, 5]
    with pytest.raises(kilter.Error, match="max_seq_length 3 is out of range"):
        tokenizer.encode("the", length=3)
