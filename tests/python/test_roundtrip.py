"""Reading a model and writing it again changes nothing that ONNX Runtime can see."""

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import kilter
from conftest import DATA

onnxruntime = pytest.importorskip("onnxruntime")
STORED = [
    case
    for kind in ("pytorch-converted", "pytorch-operator", "simple")
    for case in load_model_tests(kind=kind)
    if case.model_dir and (Path(case.model_dir) / "model.onnx").exists()
]


def node_cases():
    """The operator tests of the onnx package, which it makes on the fly."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if case.model is not None]


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def made_up_inputs(runtime, rng):
    feeds = {}
    for entry in runtime.get_inputs():
        shape = [size if isinstance(size, int) else 2 for size in entry.shape]
        if entry.type == "tensor(int64)":
            feeds[entry.name] = rng.integers(0, 2, shape)
        else:
            feeds[entry.name] = rng.standard_normal(shape).astype(np.float32)
    return feeds


def assert_same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            assert_same(left, right)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def ports(entries):
    return [(entry.name, entry.type, entry.shape) for entry in entries]


def check(source, target, feeds=None, external_data=False):
    """False when kilter or ONNX Runtime cannot run the original."""
    try:
        before = session(source)
        feeds = feeds or made_up_inputs(before, np.random.default_rng(1))
        expected = before.run(None, feeds)
        model = kilter.load(source, optimize=False)
    except Exception:
        return False
    model.save(target, external_data=external_data)
    after = session(target)
    assert ports(after.get_inputs()) == ports(before.get_inputs())
    assert ports(after.get_outputs()) == ports(before.get_outputs())
    assert_same(after.run(None, feeds), expected)
    return True


@pytest.mark.parametrize("case", STORED, ids=[case.name for case in STORED])
def test_stored_cases(case, tmp_path):
    check(Path(case.model_dir) / "model.onnx", tmp_path / "model.onnx")


def test_operator_cases(tmp_path):
    compared = 0
    for case in node_cases():
        source, target = tmp_path / "before.onnx", tmp_path / "after.onnx"
        onnx.save(case.model, source)
        values = [
            numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
            for value in case.data_sets[0][0]
        ]
        feeds = {entry.name: value for entry, value in zip(case.model.graph.input, values, strict=False)}
        try:
            compared += check(source, target, feeds)
        except AssertionError as error:
            raise AssertionError(f"{case.name}: {error}") from error
    assert compared > 800


@pytest.mark.parametrize("external_data", [False, True])
@pytest.mark.parametrize("path", sorted(DATA.glob("onnx/*.onnx")), ids=lambda path: path.stem)
def test_published_models(path, external_data, tmp_path):
    assert check(path, tmp_path / path.name, external_data=external_data)


@pytest.mark.parametrize("name", ["resnet50", "mobilenetv2", "bert-base"])
def test_generated_models(name, tmp_path):
    models = pytest.importorskip("models")
    assert check(models.cached(name), tmp_path / "model.onnx")


def test_onnx_accepts_what_is_written(tmp_path):
    for case in STORED[:20]:
        target = tmp_path / "model.onnx"
        kilter.load(Path(case.model_dir) / "model.onnx", optimize=False).save(target)
        onnx.checker.check_model(str(target))
