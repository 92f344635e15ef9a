"""Blocks and checkpoints of MXNet, quantized and tuned; the result is called as they are."""

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn

import kilter
from conftest import relative


@pytest.fixture(scope="module")
def cifar(request):
    """Normalized images and labels by name of the file."""
    from PIL import Image

    folder = request.getfixturevalue("shared_data") / "cifar10"

    def images(name):
        rows = np.asarray(Image.open(folder / f"{name}.png").convert("RGB"), np.float32) / 255
        x = rows.reshape(-1, 32, 32, 3)
        x = (x - np.float32([0.4914, 0.4822, 0.4465])) / np.float32([0.2023, 0.1994, 0.2010])
        labels = np.loadtxt(folder / f"{name}_labels.txt", dtype=int)
        return np.ascontiguousarray(x.transpose(0, 3, 1, 2)), labels

    return images


def batches(images, labels, size=50):
    return [
        (mx.nd.array(images[i : i + size]), mx.nd.array(labels[i : i + size]))
        for i in range(0, len(images), size)
    ]


def accuracy_over(data):
    def evaluate(model):
        metric = mx.metric.Accuracy()
        for x, y in data:
            metric.update([y], [model(x)])
        return metric.get()[1]

    return evaluate


def small_block():
    block = nn.HybridSequential()
    block.add(nn.Conv2D(8, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Flatten(), nn.Dense(4))
    block.initialize(mx.init.Xavier())
    return block


def test_a_block_comes_back_as_one():
    block = small_block()
    random = np.random.default_rng(1)
    loader = mx.gluon.data.DataLoader(
        mx.gluon.data.ArrayDataset(random.standard_normal((16, 3, 12, 12)).astype(np.float32), np.zeros(16)),
        4,
    )
    small = kilter.quantize(block, loader)
    x = mx.nd.array(random.standard_normal((2, 3, 12, 12)))
    for result in (small(x), small.forward(x)):
        assert isinstance(result, mx.nd.NDArray)
        assert relative(result.asnumpy(), block(x).asnumpy()) < 0.1


def test_a_checkpoint_is_a_model(tmp_path):
    block = small_block()
    x = mx.nd.random.normal(shape=(4, 3, 12, 12))
    block.hybridize()
    expected = block(x).asnumpy()
    block.export(str(tmp_path / "net"))
    checkpoint = mx.model.load_checkpoint(str(tmp_path / "net"), 0)
    small = kilter.quantize(checkpoint, [x])
    assert relative(small(x).asnumpy(), expected) < 0.1
    iterator = mx.io.NDArrayIter(x, mx.nd.zeros((4,)), batch_size=2)
    assert relative(kilter.quantize(checkpoint, iterator)(x).asnumpy(), expected) < 0.1


@pytest.mark.parametrize(
    ("name", "loss"),
    [("cifar_resnet20_v1", "0.1%"), ("cifar_resnet20_v2", "0.5%"), ("cifar_resnet56_v2", "0.5%")],
)
def test_real_network_keeps_the_promise(name, loss, shared_data, cifar):
    prefix = f"{shared_data}/mxnet_cifar10/{name}"
    block = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    test = batches(*cifar("test1000"))
    result = kilter.tune(
        block,
        calibration=batches(*cifar("calib500"))[:5],
        evaluate=accuracy_over(test),
        max_loss=loss,
        samples=250,
    )
    print(
        f"{name}: {result.baseline.accuracy[0]:.4f} -> {result.best.accuracy[0]:.4f}, {len(result.trials)} trials"
    )
    assert result.met
    # What comes out is what was measured.
    assert accuracy_over(test)(result.model) == pytest.approx(result.best.accuracy[0])


@pytest.mark.parametrize("name", ["cifar_resnet20_v1", "cifar_resnet20_v2", "cifar_resnet56_v2"])
def test_exported_network_runs_in_mxnet(name, shared_data, cifar, tmp_path):
    prefix = f"{shared_data}/mxnet_cifar10/{name}"
    block = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    test = batches(*cifar("test1000"))
    small = kilter.quantize(block, batches(*cifar("calib500"))[:5], samples=250)
    operators = small.export(tmp_path / "int8")
    # Names as MXNet's own tools print them.
    assert any(fused.startswith("sg_mkldnn_conv_bn") for _, op, fused, _ in operators if op == "Convolution")
    there = mx.gluon.SymbolBlock.imports(
        f"{tmp_path}/int8-symbol.json", ["data"], f"{tmp_path}/int8-0000.params"
    )
    evaluate = accuracy_over(test)
    before, here, exported_there = evaluate(block), evaluate(small), evaluate(there)
    print(f"{name}: FP32 {before:.3f}, INT8 {here:.3f} in kilter, {exported_there:.3f} in MXNet")
    assert exported_there > 0.992 * before


class Branches(mx.gluon.HybridBlock):
    """One convolution called twice, and another, behind the two sides of a split."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Conv2D(4, 3, padding=1, in_channels=4)
        self.other = nn.Conv2D(4, 3, padding=1, in_channels=4)

    def hybrid_forward(self, F, x):
        left, right = F.split(x, num_outputs=2, axis=1)
        return F.concat(self.shared(self.shared(left)), self.other(right), dim=1)


def test_exported_calls_of_one_block_have_ranges_of_their_own(tmp_path):
    block = Branches()
    block.initialize(mx.init.Normal(0.3))
    block.hybridize()
    x = mx.nd.random.normal(shape=(2, 8, 9, 9))
    expected = block(x).asnumpy()
    operators = kilter.quantize(block, [[x]]).export(tmp_path / "int8")
    fused = [name for name, op, fused, _ in operators if op == "Convolution" and fused]
    assert len(fused) == len(set(fused)) == 3
    there = mx.gluon.SymbolBlock.imports(
        f"{tmp_path}/int8-symbol.json", ["data"], f"{tmp_path}/int8-0000.params"
    )
    found = there(x).asnumpy()
    for half in (slice(0, 4), slice(4, 8)):
        assert relative(found[:, half], expected[:, half]) < 0.05


@pytest.mark.parametrize("name", ["cifar_resnet20_v1", "cifar_resnet56_v2"])
def test_tuned_for_mxnet_means_measured_in_mxnet(name, shared_data, cifar, tmp_path):
    prefix = f"{shared_data}/mxnet_cifar10/{name}"
    block = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    images, labels = cifar("test1000")
    evaluate = accuracy_over(batches(images[:400], labels[:400]))
    result = kilter.tune(
        block,
        calibration=batches(*cifar("calib500"))[:5],
        evaluate=evaluate,
        max_loss="0.5%",
        samples=250,
        max_trials=30,
        target="mxnet",
    )
    assert result.met
    assert result.baseline.accuracy[0] == pytest.approx(evaluate(block))
    result.model.export(tmp_path / "int8")
    there = mx.gluon.SymbolBlock.imports(
        f"{tmp_path}/int8-symbol.json", ["data"], f"{tmp_path}/int8-0000.params"
    )
    assert evaluate(there) == pytest.approx(result.best.accuracy[0], abs=0.003)


def test_a_target_that_cannot_run_it_is_an_error():
    samples = [mx.nd.random.normal(shape=(2, 3, 12, 12))]
    with pytest.raises(kilter.Error, match="evaluates models in MXNet"):
        kilter.tune(small_block(), data=[(samples[0], mx.nd.zeros(2))], metric="topk", target="mxnet")
