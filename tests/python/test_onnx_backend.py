"""The PyTorch cases of the onnx package, layers and operators, against their stored outputs."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.backend.test.loader import load_model_tests

import kilter

CASES = [case for kind in ("pytorch-converted", "pytorch-operator") for case in load_model_tests(kind=kind)]


def stored_tensors(folder, kind, count):
    tensors = []
    for index in range(count):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((folder / f"{kind}_{index}.pb").read_bytes())
        tensors.append(onnx.numpy_helper.to_array(tensor))
    return tensors


def test_all_cases_are_here():
    assert len(CASES) == 117


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case):
    model = kilter.load(Path(case.model_dir) / "model.onnx")
    data_sets = sorted(Path(case.model_dir).glob("test_data_set_*"))
    assert data_sets
    for folder in data_sets:
        outputs = model(*stored_tensors(folder, "input", len(model.inputs)))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        expected = stored_tensors(folder, "output", len(model.outputs))
        for found, wanted in zip(outputs, expected, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=max(case.rtol, 1e-4), atol=max(case.atol, 1e-6))
