"""Examples of docstrings, and those of the documentation of the Python interface, run."""

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import shutil

import gluon
import numpy as np
import pytest

import kilter
from conftest import FIXTURE, ROOT


def modules():
    """All that can be imported here; bridges need their frameworks."""
    for entry in pkgutil.walk_packages(kilter.__path__, "kilter."):
        parts = entry.name.split(".")
        framework = parts[2].partition("_")[0] if parts[1:2] == ["frameworks"] and len(parts) > 2 else None
        if framework in kilter.frameworks.names() and importlib.util.find_spec(framework) is None:
            continue
        yield entry.name


NAMES = ["kilter", *modules()]


class Batches(list):
    """A data loader."""

    batch_size = 32


@pytest.fixture
def world(tmp_path, monkeypatch):
    """What the examples know: files in the folder, and these names."""
    monkeypatch.chdir(tmp_path)
    for name in ("model.onnx", "images.npy", "labels.npy"):
        shutil.copy(FIXTURE / name, tmp_path)
    images = np.load("images.npy")[:256].astype(np.float32) / 255
    labels = np.load("labels.npy")[:256]
    batches = Batches((images[i : i + 32], labels[i : i + 32]) for i in range(0, 256, 32))

    def accuracy(model):
        return float((model(images).argmax(1) == labels).mean())

    return dict(kilter=kilter, np=np, images=images, labels=labels, batches=batches, accuracy=accuracy)


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_docstrings(name, world, monkeypatch):
    module = importlib.import_module(name)
    if name == "kilter.frameworks":  # with a framework that is always there
        gluon.plug_in(monkeypatch)
        tensors = [gluon.NDArray(images) for images, _ in world["batches"]]
        world |= {
            "module": gluon.Block(None, "model.onnx"),
            "first_batch": tensors[0],
            "another_batch": tensors[1],
            "batches": tensors,
        }
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    finder = doctest.DocTestFinder(exclude_empty=True)
    report = []
    for test in finder.find(module, name, globs={**vars(module), **world}):
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def public_objects():
    for name in NAMES:
        module = importlib.import_module(name)
        for key in getattr(module, "__all__", ()):
            entry = getattr(module, key)
            if inspect.isclass(entry) or inspect.isfunction(entry):
                yield pytest.param(entry, id=f"{name}.{key}")


@pytest.mark.parametrize("entry", list(public_objects()))
def test_everything_public_is_documented_and_typed(entry):
    assert inspect.getdoc(entry), "no docstring"
    functions = [entry] if inspect.isfunction(entry) else []
    if inspect.isclass(entry) and entry.__module__.startswith("kilter"):
        functions = [part for key, part in vars(entry).items() if inspect.isfunction(part) and key[0] != "_"]
        functions += [part for key, part in vars(entry).items() if key in ("__init__", "__call__")]
    for function in functions:
        if not function.__module__.startswith("kilter"):
            continue  # made by a decorator of the library
        signature = inspect.signature(function)
        untyped = [
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.annotation is inspect.Parameter.empty and parameter.name not in ("self", "cls")
        ]
        assert not untyped, f"{function.__qualname__}: no types for {', '.join(untyped)}"
        assert (
            signature.return_annotation is not inspect.Signature.empty or function.__name__ == "__init__"
        ), f"{function.__qualname__}: no type for the result"


@pytest.mark.skipif(not (ROOT / "docs" / "python.md").exists(), reason="there is no docs/python.md")
def test_examples_of_the_documentation(world):
    """Blocks of Python in docs/python.md, one after another; those that need a framework say so and are left out."""
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    for block in blocks:
        if "import torch" in block or "import mxnet" in block or "import tensorflow" in block:
            continue
        exec(compile(block, "docs/python.md", "exec"), world)
