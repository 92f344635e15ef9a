"""The code of documents 000, 001 and 003 with only names changed, and the three usages of 001; on real data."""

import ast
from pathlib import Path
from types import SimpleNamespace

import documents
import gluon
import numpy as np
import pytest

import kilter
from conftest import DATA, FIXTURE


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def accuracy(model, images, labels):
    return float((model(images).argmax(1) == labels).mean())


def test_document_000_tunes_with_a_loader_of_its_own(here, fashion):
    path, images, labels = fashion
    seen = []

    class Dataset:
        """Provides the file and the batch size once, as the document's does."""

        def __init__(self, filename, batch_size):
            self.items = [(filename, batch_size)]

        def __len__(self):
            return len(self.items)

        def __getitem__(self, index):
            return self.items[index]

    def collate_fn(batch):
        ((filename, batch_size),) = batch
        seen.append(filename)
        return images[:batch_size], 0

    def eval_func(graph, iteration=-1):
        return accuracy(graph, images, labels)

    first = kilter.quantize(path, [images[:1]]).report.operators[0].name
    (here / "bert.yaml").write_text(documents.BERT_YAML % first)
    quantizer, q_model = documents.tune_bert(
        path,
        Dataset,
        collate_fn,
        eval_func,
        SimpleNamespace(filename="eval.tf_record"),
        SimpleNamespace(predict_batch_size=64),
    )
    assert set(seen) == {"eval.tf_record"}
    assert quantizer.met and isinstance(q_model, kilter.QuantizedModel)
    assert first in quantizer.strategy.best_qmodel.q_config["quant_cfg"]["excluded_symbols"]
    assert eval_func(q_model) == quantizer.result.best.accuracy[0]


class Bert_DataLoader:
    """As the example of document 001 has it: it makes (inputs, labels) of longer tuples."""

    def __init__(self, loader=None, batch_size=1):
        self.loader, self.batch_size = loader, batch_size

    def __iter__(self):
        for *inputs, label in self.loader:
            yield tuple(inputs), label


def test_document_001_tunes_with_an_evaluation_function(here, fashion):
    path, images, labels = fashion
    (here / "conf.yaml").write_text(documents.BLENDCNN_YAML)
    data_iter = [(images[i : i + 32], labels[i : i + 32]) for i in range(0, 512, 32)]
    args = SimpleNamespace(batch_size=32, lpot_yaml="conf.yaml")
    quantizer, q_model = documents.tune_blendcnn(
        path, Bert_DataLoader, data_iter, args, lambda model: accuracy(model, images, labels)
    )
    assert q_model.met and quantizer.result.workspace.startswith("kilter_workspace")
    assert accuracy(q_model, images, labels) >= 0.99 * quantizer.result.baseline.accuracy[0]
    q_model.save("saved")
    again = kilter.load("saved/best_model.onnx")
    assert np.array_equal(again(images[:8]), q_model(images[:8]))


def usage_yaml(folder, evaluation_loader=True, calibration_loader=True):
    loader = f"""
      batch_size: 32
      dataset: {{NumPy: {{root: {folder}/images.npy, labels: {folder}/labels.npy}}}}
      transform: {{Cast: {{dtype: float32}}, Rescale: {{}}}}"""
    calibration = f"\n    dataloader:{loader}" if calibration_loader else ""
    evaluation = f"\n    dataloader:{loader}" if evaluation_loader else ""
    return f"""
model: {{name: fashion, framework: onnxrt_qdq}}
quantization:
  calibration:
    sampling_size: 128{calibration}
evaluation:
  accuracy:
    metric: {{topk: 1}}{evaluation}
tuning:
  accuracy_criterion: {{relative: 0.01}}
  exit_policy: {{timeout: 0}}
"""


def loader_of(images, labels, size=32):
    class Loader:
        batch_size = size

        def __iter__(self):
            for first in range(0, len(images), size):
                yield images[first : first + size], labels[first : first + size]

    return Loader()


def test_document_001_usage_1_everything_in_the_yaml(here):
    (here / "conf.yaml").write_text(usage_yaml(FIXTURE))
    from kilter.experimental import Quantization

    quantizer = Quantization("conf.yaml")
    quantizer.model = FIXTURE / "model.onnx"
    q_model = quantizer()
    assert q_model.met and quantizer.result.best.samples == len(np.load(FIXTURE / "labels.npy"))

    from kilter.quantization import Quantization

    older = Quantization("conf.yaml")
    assert older(FIXTURE / "model.onnx").plan == q_model.quantized.plan


def test_document_001_usage_2_loaders_given_and_the_metric_in_the_yaml(here):
    images = np.load(FIXTURE / "images.npy").astype(np.float32) / 255
    labels = np.load(FIXTURE / "labels.npy")
    (here / "conf.yaml").write_text(usage_yaml(FIXTURE, evaluation_loader=False, calibration_loader=False))
    from kilter.experimental import Quantization

    quantizer = Quantization("conf.yaml")
    quantizer.model = FIXTURE / "model.onnx"
    quantizer.calib_dataloader = loader_of(images[:128], labels[:128])
    quantizer.eval_dataloader = loader_of(images, labels)
    q_model = quantizer()
    assert q_model.met
    assert accuracy(q_model, images, labels) == pytest.approx(quantizer.result.best.accuracy[0])

    from kilter.quantization import Quantization

    older = Quantization("conf.yaml")
    again = older(
        FIXTURE / "model.onnx",
        q_dataloader=loader_of(images[:128], labels[:128]),
        eval_dataloader=loader_of(images, labels),
    )
    assert again.plan == q_model.quantized.plan


def test_document_001_usage_3_a_function_of_ones_own(here, fashion):
    path, images, labels = fashion
    from kilter.quantization import Quantization

    (here / "conf.yaml").write_text(documents.BLENDCNN_YAML)
    quantizer = Quantization("conf.yaml")
    q_model = quantizer(
        path,
        q_dataloader=loader_of(images, labels),
        eval_func=lambda model: accuracy(model, images, labels),
    )
    assert quantizer.met and accuracy(q_model, images, labels) == quantizer.result.best.accuracy[0]


def test_document_003_resnet18(here, monkeypatch):
    gluon.plug_in(monkeypatch)
    (here / "cnn.yaml").write_text(documents.CNN_YAML)
    net = gluon.Block(kilter.load(FIXTURE / "model.onnx"), FIXTURE / "model.onnx")
    quantizer, qnet, eval_func = documents.tune_resnet18(gluon.mx, net, (1, 1, 28, 28), str(FIXTURE))
    assert isinstance(qnet, gluon.Block) and quantizer.strategy.best_qmodel.met
    assert eval_func(qnet) == quantizer.result.best.accuracy[0]
    (date,) = (path.name for path in Path("kilter_workspace").iterdir())
    recovered = documents.recover_resnet(net, date, quantizer.result.best.number - 1)
    assert isinstance(recovered, gluon.Block) and eval_func(recovered) == quantizer.result.best.accuracy[0]
    assert recovered.engine.plan == quantizer.strategy.best_qmodel.quantized.plan
    # The study knows what the model was: neither it nor the framework is needed.
    assert kilter.recover(quantizer.result.workspace).plan == recovered.engine.plan


def test_document_003_resnet50_v2(here, monkeypatch, capsys):
    gluon.plug_in(monkeypatch)
    (here / "resnet50v2_mse.yaml").write_text(documents.RESNET50V2_MSE_YAML)
    images = np.load(FIXTURE / "images.npy")[:576].astype(np.float32) / 255
    labels = np.load(FIXTURE / "labels.npy")[:576]
    net = gluon.Block(kilter.load(FIXTURE / "model.onnx"), FIXTURE / "model.onnx")
    quantizer, qnet = documents.tune_resnet50_v2(gluon.mx, net, (images, labels), 64)
    said, printed = capsys.readouterr().out.splitlines()
    assert said == "INC finished"
    quant_cfg = ast.literal_eval(printed)
    assert list(quant_cfg) == ["excluded_symbols", "quantized_dtype", "quantize_mode", "quantize_granularity"]
    spared = {entry.name for entry in quantizer.result.spared}
    assert set(quant_cfg["excluded_symbols"]) <= spared
    assert np.array_equal(
        kilter.load("__quantized_with_inc.onnx")(images[:8]), qnet(gluon.NDArray(images[:8])).asnumpy()
    )


@pytest.mark.skipif(not (DATA / "onnx").is_dir(), reason="the data of KILTER_DATA is not here")
def test_document_001_on_imagenet(here):
    """Usage 1 on MobileNetV2, with what the other usages find in Python."""
    names = [line.split() for line in (DATA / "imagenet_val1000" / "labels.txt").read_text().splitlines()][
        :48
    ]
    (here / "labels.txt").write_text("".join(f"{name} {label}\n" for name, label in names))
    transform = """
      transform:
        CenterCrop: {size: 224}
        ToTensor: {}
        Normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}"""
    (here / "conf.yaml").write_text(f"""
model: {{name: mobilenetv2, framework: pytorch}}
quantization:
  calibration:
    sampling_size: 16
    dataloader:
      batch_size: 8
      dataset: {{ImagenetRaw: {{data_path: {DATA}/imagenet_val1000, image_list: {here}/labels.txt}}}}{transform}
evaluation:
  accuracy:
    metric: {{topk: 1}}
    dataloader:
      batch_size: 8
      dataset: {{ImagenetRaw: {{data_path: {DATA}/imagenet_val1000, image_list: {here}/labels.txt}}}}{transform}
tuning:
  accuracy_criterion: {{absolute: 0.1}}
  exit_policy: {{timeout: 0, max_trials: 3}}
""")
    from kilter.experimental import Quantization

    quantizer = Quantization("conf.yaml")
    quantizer.model = DATA / "onnx" / "mobilenetv2-7.onnx"
    q_model = quantizer()
    assert q_model.met and quantizer.result.baseline.accuracy[0] > 0.5
    dataset = quantizer.dataset(
        "ImagenetRaw",
        str(DATA / "imagenet_val1000"),
        str(here / "labels.txt"),
        transform=[
            {"CenterCrop": {"size": 224}},
            "ToTensor",
            {"Normalize": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}},
        ],
    )
    images, labels = (np.stack(column) for column in zip(*dataset, strict=True))
    assert accuracy(q_model, images, labels) == pytest.approx(quantizer.result.best.accuracy[0])
