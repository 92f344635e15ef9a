"""The code of MXNet's documentation on tuning, with only names changed, in MXNet itself: documents.py of tests/python has it."""

import ast
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest

import kilter
from kilter.frameworks.mxnet import Block

sys.path.append(str(Path(__file__).parents[2] / "python"))
import documents


def network(shared_data, name):
    prefix = f"{shared_data}/mxnet_cifar10/{name}"
    return mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")


@pytest.fixture
def images(shared_data):
    """192 images as they are, and their labels."""
    from PIL import Image

    folder = shared_data / "cifar10"
    rows = np.asarray(Image.open(folder / "test1000.png").convert("RGB"))[:192].reshape(-1, 32, 32, 3)
    return rows, np.loadtxt(folder / "test1000_labels.txt", dtype=int)[:192]


def test_resnet18(shared_data, images, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cnn.yaml").write_text(documents.CNN_YAML)
    record = mx.recordio.MXRecordIO("val.rec", "w")
    for i, (image, label) in enumerate(zip(*images, strict=True)):
        header = mx.recordio.IRHeader(0, float(label), i, 0)
        record.write(mx.recordio.pack_img(header, image[..., ::-1], quality=9, img_fmt=".png"))
    record.close()
    net = network(shared_data, "cifar_resnet20_v1")
    quantizer, qnet, eval_func = documents.tune_resnet18(mx, net, (1, 3, 32, 32), "val.rec")
    assert isinstance(qnet, Block) and quantizer.strategy.best_qmodel.met
    assert eval_func(qnet) == quantizer.result.best.accuracy[0] > 0.8
    (date,) = (path.name for path in Path("kilter_workspace").iterdir())
    recovered = documents.recover_resnet(net, date, quantizer.result.best.number - 1)
    assert isinstance(recovered, Block) and eval_func(recovered) == quantizer.result.best.accuracy[0]
    assert kilter.recover(quantizer.result.workspace).plan == recovered.plan


def test_resnet50_v2(shared_data, images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mx.gluon, "metric", mx.metric, raising=False)  # where MXNet 2 has it
    Path("resnet50v2_mse.yaml").write_text(documents.RESNET50V2_MSE_YAML)
    pixels, labels = images
    x = (pixels.astype(np.float32) / 255 - np.float32([0.4914, 0.4822, 0.4465])) / np.float32(
        [0.2023, 0.1994, 0.2010]
    )
    dataset = mx.gluon.data.ArrayDataset(np.ascontiguousarray(x.transpose(0, 3, 1, 2)), labels)
    net = network(shared_data, "cifar_resnet20_v2")
    quantizer, qnet = documents.tune_resnet50_v2(mx, net, dataset, 64)
    said, printed = capsys.readouterr().out.splitlines()[-2:]
    assert said == "INC finished"
    quant_cfg = ast.literal_eval(printed)
    assert list(quant_cfg) == ["excluded_symbols", "quantized_dtype", "quantize_mode", "quantize_granularity"]
    assert all(name.startswith("sg_mkldnn_") for name in quant_cfg["excluded_symbols"] if "conv" in name)
    assert quantizer.strategy.best_qmodel.met
    exported = mx.gluon.SymbolBlock.imports(
        "__quantized_with_inc-symbol.json", ["data"], "__quantized_with_inc-0000.params"
    )
    there = exported(mx.nd.array(dataset[:64][0])).asnumpy()
    assert (there.argmax(1) == qnet(mx.nd.array(dataset[:64][0])).asnumpy().argmax(1)).mean() > 0.9
