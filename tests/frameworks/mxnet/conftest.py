"""MXNet is the judge: networks run there and in kilter, on the same inputs."""

import os
from pathlib import Path

# Its fused FP32 path miscomputes pre-activation networks.
os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")

import numpy as np
import pytest

mx = pytest.importorskip("mxnet", reason="MXNet is not installed: tools/framework_env.sh mxnet")


@pytest.fixture(autouse=True)
def seeded():
    mx.random.seed(7)


@pytest.fixture(scope="session")
def shared_data():
    """Real networks and images, which do not come with kilter."""
    folder = Path(os.environ.get("KILTER_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not (folder / "mxnet_cifar10").exists():
        pytest.skip("KILTER_DATA names no folder with mxnet_cifar10")
    return folder


def relative(found, expected):
    """The largest difference over the largest element."""
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-12))


def exported(block, prefix, *inputs):
    """Writes a Gluon block as a symbol with parameters; returns its outputs for these inputs as arrays."""
    block.hybridize()
    outputs = block(*inputs)
    block.export(str(prefix))
    return [y.asnumpy() for y in (outputs if isinstance(outputs, list | tuple) else [outputs])]
