"""How models of frameworks are recognised, and how their arguments and results are arranged; without any framework."""

import collections
import dataclasses
import inspect
import json
import subprocess
import sys
import types

import numpy as np
import onnx
import pytest

import kilter
from kilter import frameworks
from kilter.frameworks.signature import Signature, describe_parameters, given_arguments
from kilter.frameworks.structure import TENSOR, builder, paths, take_apart


@dataclasses.dataclass
class Output:
    logits: object
    hidden: object = None


Pair = collections.namedtuple("Pair", "low high")


def is_tensor(value):
    return isinstance(value, np.ndarray)


def test_what_kilter_reads_itself_needs_no_bridge(fashion):
    for model in (fashion[0], str(fashion[0]), b"", kilter.load(fashion[0]), onnx.load(fashion[0]), None, 3):
        assert frameworks.bridge_for(model) is None


def test_model_protos_are_models(fashion):
    path, images, _ = fashion
    np.testing.assert_array_equal(kilter.load(onnx.load(path))(images[:3]), kilter.load(path)(images[:3]))
    with pytest.raises(kilter.InputTypeError, match="a dict is no model"):
        kilter.quantize({}, [images[:3]])


def test_no_framework_is_imported_for_a_foreign_object():
    code = (
        "import sys, kilter\n"
        "class Odd: pass\n"
        "assert kilter.frameworks.bridge_for(Odd()) is None\n"
        "assert not {'torch', 'tensorflow', 'mxnet'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_framework_plugs_in_with_one_class(fashion, monkeypatch):
    """Everything that takes models takes the framework's, and gives its own back."""
    path, images, labels = fashion

    class Net:
        def __call__(self, batch):
            return self.run(batch)

    Net.__module__ = "pretended.nets"

    class Bridge:
        name = "Pretended"
        accepts = staticmethod(lambda model: isinstance(model, Net))

        def load(self, model, example):
            assert example["wrapped"].shape == (5, 1, 28, 28)
            return kilter.load(path)

        def arrays(self, item):
            return np.asarray(item)

        def feeds(self, item):
            return {"image": item["wrapped"]}

        def wrap(self, model, original):
            net = Net()
            net.run, net.model, net.original = lambda batch: model(batch["wrapped"]), model, original
            return net

    module = types.ModuleType("pretended_bridge")
    module.Bridge = Bridge
    monkeypatch.setitem(sys.modules, "pretended_bridge", module)
    monkeypatch.setitem(frameworks._MODULES, "pretended", "pretended_bridge")

    net = Net()
    batches = [{"wrapped": images[start : start + 5]} for start in range(0, 50, 5)]
    small = kilter.quantize(net, batches)
    assert isinstance(small, Net) and small.original is net
    assert isinstance(small.model, kilter.QuantizedModel)
    expected = kilter.quantize(path, [batch["wrapped"] for batch in batches])
    np.testing.assert_array_equal(small(batches[0]), expected(images[:5]))

    def evaluate(trial):
        assert isinstance(trial, Net)
        return np.mean(trial({"wrapped": images}).argmax(1) == labels)

    result = kilter.tune(net, batches, evaluate=evaluate, max_loss="5%")
    assert isinstance(result.model, Net) and result.model.model is result.quantized
    pairs = [(batch, list(labels[5 * i : 5 * i + 5])) for i, batch in enumerate(batches)]
    assert isinstance(kilter.tune(net, metric="topk", data=pairs, max_loss="20%").model, Net)
    assert kilter.sensitivity(net, iter(batches))
    assert kilter.compare(net, path, batches)[0].snr_db == float("inf")
    with pytest.raises(kilter.InputValueError, match="a model of Pretended needs samples"):
        kilter.recover("nowhere", model=net)


def test_structures_are_kept_through_json():
    a, b, c = (np.full(1, value) for value in range(3))
    for item in (
        a,
        (a, b),
        [a, (b, {"x": c, "y": None})],
        {"one": a, "two": [b, 3, "text", True]},
        Output(a),
        Output(a, (b, c)),
        Pair(a, [b]),
        (),
    ):
        leaves, structure = take_apart(item, is_tensor)
        structure = json.loads(json.dumps(structure))
        again = builder(structure)(iter(leaves))
        assert type(again) is type(item)
        assert take_apart(again, is_tensor)[1] == structure
        assert len(paths(structure)) == len(set(paths(structure))) == len(leaves)
    assert paths(take_apart({"x": a, "y": (b, {"z": c})}, is_tensor)[1]) == ["x", "y.0", "y.1.z"]


def test_structures_hold_only_what_can_be_written():
    with pytest.raises(kilter.InputTypeError, match="found a object"):
        take_apart((object(),), is_tensor)
    with pytest.raises(kilter.InputTypeError, match="the key 3"):
        take_apart({3: np.zeros(1)}, is_tensor)


def test_a_file_cannot_make_anything_but_plain_holders():
    for name in ("subprocess:Popen", "os:system", "builtins:dict", "nowhere:Thing", "collections:Nothing"):
        with pytest.raises(kilter.InputValueError):
            builder({"class": name, "fields": {}})


def forward(x, mask=None, *, scale=2, extra=None):
    """What the signature below is of."""


def test_it_does_not_matter_which_arguments_have_names():
    x, mask = np.zeros(1), np.ones(1)
    python = inspect.signature(forward)
    arguments = take_apart(given_arguments(python.bind(x, mask)), is_tensor)[1]
    signature = Signature(describe_parameters(python), arguments, TENSOR)
    assert signature.inputs == ["x", "mask"]
    for args, kwargs in (
        ((x, mask), {}),
        ((x,), {"mask": mask}),
        ((), {"mask": mask, "x": x}),
        ((x, mask), {"scale": 2, "extra": None}),
    ):
        found = signature.tensors(args, kwargs, is_tensor)
        assert found[0] is x and found[1] is mask
    for args, kwargs in (
        ((x,), {}),
        ((x, mask), {"scale": 3}),
        ((x, 1), {}),
        ((x, mask, x), {}),
        ((), {"y": x}),
    ):
        with pytest.raises(kilter.InputValueError):
            signature.tensors(args, kwargs, is_tensor)


def test_files_without_a_signature_take_tensors_in_order(fashion):
    signature = Signature.of(kilter.load(fashion[0]))
    assert len(signature.inputs) == 1 and signature.outputs == TENSOR


def test_metadata_and_bytes_of_a_model(fashion, tmp_path):
    path, images, _ = fashion
    proto = onnx.load(path)
    entry = proto.metadata_props.add()
    entry.key, entry.value = "author", "somebody"
    model = kilter.load(proto)
    assert model.metadata["author"] == "somebody"
    small = kilter.quantize(model, [images[:10]])
    assert small.metadata["author"] == "somebody"
    small.save(tmp_path / "q.onnx")
    assert small.to_bytes() == (tmp_path / "q.onnx").read_bytes()
    np.testing.assert_array_equal(kilter.load(small.to_bytes())(images), small(images))
    for broken in ("[]", "{}", "nonsense", '[[], {"dict": {}}, "*"]'):
        entry.key, entry.value = "kilter.signature", broken
        with pytest.raises(kilter.InputValueError, match="signature"):
            Signature.of(kilter.load(proto))
