"""Every network of Gluon's model zoo, and the real CIFAR-10 networks: kilter computes what MXNet does."""

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon.model_zoo import vision

import kilter
from conftest import exported, relative

# One of every family and depth that differs in structure; random weights.
ZOO = {
    "resnet18_v1": 64,
    "resnet34_v1": 64,
    "resnet50_v1": 64,
    "resnet101_v1": 64,
    "resnet152_v1": 64,
    "resnet18_v2": 64,
    "resnet34_v2": 64,
    "resnet50_v2": 64,
    "resnet101_v2": 64,
    "resnet152_v2": 64,
    "vgg11": 32,
    "vgg13": 32,
    "vgg16": 32,
    "vgg19": 32,
    "vgg11_bn": 32,
    "vgg16_bn": 32,
    "alexnet": 224,
    "densenet121": 224,
    "densenet169": 224,
    "squeezenet1.0": 224,
    "squeezenet1.1": 224,
    "inceptionv3": 299,
    "mobilenet1.0": 64,
    "mobilenet0.25": 64,
    "mobilenetv2_1.0": 64,
    "mobilenetv2_0.5": 64,
}


def random_statistics(block):
    """Statistics of batch normalization as training leaves them, not 0 and 1."""
    for name, parameter in block.collect_params().items():
        if name.endswith("running_mean"):
            parameter.set_data(mx.nd.random.normal(0, 0.1, parameter.shape))
        if name.endswith("running_var"):
            parameter.set_data(mx.nd.random.uniform(0.5, 1.5, parameter.shape))


@pytest.mark.parametrize("name", ZOO)
def test_zoo_network(name, tmp_path):
    block = vision.get_model(name)
    block.initialize(mx.init.Xavier(magnitude=2))
    x = mx.nd.random.uniform(-1, 1, (2, 3, ZOO[name], ZOO[name]))
    block(x)
    random_statistics(block)
    (expected,) = exported(block, tmp_path / "net", x)
    model = kilter.load(tmp_path / "net")
    assert model.inputs[0].shape[1] == 3
    assert relative(model(x.asnumpy()), expected) < 1e-4


@pytest.mark.parametrize("name", ["cifar_resnet20_v1", "cifar_resnet20_v2", "cifar_resnet56_v2"])
def test_real_network(name, shared_data):
    prefix = shared_data / "mxnet_cifar10" / name
    block = mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", ["data"], f"{prefix}-0000.params")
    x = np.random.default_rng(3).standard_normal((4, 3, 32, 32)).astype(np.float32)
    assert relative(kilter.load(prefix)(x), block(mx.nd.array(x)).asnumpy()) < 1e-4
