"""Arguments and results keep their arrangement, whatever it is."""

import collections
import dataclasses

import pytest
import torch
from torch import nn

import kilter
from kilter.frameworks import torch_export

Pair = collections.namedtuple("Pair", "low high")


@dataclasses.dataclass
class Output(collections.OrderedDict):
    """A mapping and a dataclass at once, as the models of Hugging Face return them."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    states: tuple | None = None


class Net(nn.Module):
    """Two layers, and an arrangement of what they return."""

    def __init__(self, arrange):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.arrange = nn.Linear(6, 8), nn.Linear(8, 4), arrange

    def forward(self, x, mask=None, *, scale=1.0):
        hidden = torch.relu(self.first(x if mask is None else x * mask)) * scale
        return self.arrange(self.second(hidden), hidden)


ARRANGEMENTS = {
    "one": lambda a, b: a,
    "tuple": lambda a, b: (a, b),
    "list": lambda a, b: [a, [b]],
    "dict": lambda a, b: {"logits": a, "extra": (b, None, 3)},
    "dataclass": lambda a, b: Output(logits=a, states=(b, b)),
    "namedtuple": lambda a, b: Pair(a, {"b": b}),
}


def samples(*shapes, count=4):
    torch.manual_seed(1)
    return [tuple(torch.randn(shape) for shape in shapes) for _ in range(count)]


def leaves(value):
    return torch.utils._pytree.tree_leaves(value, is_leaf=lambda item: isinstance(item, torch.Tensor))


@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_results_are_arranged_as_before(name, tmp_path):
    net = Net(ARRANGEMENTS[name])
    batches = [x for (x,) in samples((3, 6))]
    small = kilter.quantize(net, batches)
    small.save(tmp_path / "small.onnx")
    expected = net(batches[0])
    for module in (small, kilter.torch.load(tmp_path / "small.onnx")):
        found = module(batches[0])
        assert type(found) is type(expected)
        if name == "dataclass":
            assert found.loss is None and len(found.states) == 2
            expected_parts, parts = [expected.logits, *expected.states], [found.logits, *found.states]
        else:
            expected_parts, parts = leaves(expected), leaves(found)
        assert len(parts) == len(expected_parts)
        for ours, theirs in zip(parts, expected_parts, strict=True):
            if isinstance(theirs, torch.Tensor):
                assert ours.shape == theirs.shape
                assert torch.allclose(ours, theirs, atol=0.05 * theirs.abs().max().item())
            else:
                assert ours == theirs


def test_arguments_by_position_and_by_name():
    net = Net(ARRANGEMENTS["one"])
    pairs = samples((3, 6), (3, 6))
    x, mask = pairs[0]
    by_position = kilter.quantize(net, [(x, mask, torch.zeros(3)) for x, mask in pairs])
    by_name = kilter.quantize(net, [{"x": x, "mask": mask, "label": torch.zeros(3)} for x, mask in pairs])
    expected = by_position(x, mask)
    for module in (by_position, by_name):
        assert torch.equal(module(x, mask), expected)
        assert torch.equal(module(mask=mask, x=x), expected)
        assert torch.equal(module(x, mask, scale=1.0), expected)
        with pytest.raises(kilter.InputValueError, match="exported for the arguments"):
            module(x)
        with pytest.raises(kilter.InputValueError, match="exported for the arguments"):
            module(x, mask, scale=2.0)


def test_a_pair_is_inputs_and_label_where_one_argument_is_needed():
    net = Net(ARRANGEMENTS["one"])
    pairs = samples((3, 6), (3,))
    assert kilter.quantize(net, pairs)(pairs[0][0]).shape == (3, 4)


def test_arguments_in_a_collection_beside_the_label():
    net = Net(ARRANGEMENTS["one"])
    pairs = samples((3, 6), (3, 6))
    expected = kilter.quantize(net, pairs_with_labels := [(x, mask, torch.zeros(3)) for x, mask in pairs])
    found = kilter.quantize(net, [((x, mask), label) for x, mask, label in pairs_with_labels])
    assert torch.equal(found(*pairs[0]), expected(*pairs[0]))


def test_any_number_of_arguments():
    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, *parts):
            return self.layer(sum(parts))

    items = samples((2, 4), (2, 4), (2, 4))
    assert kilter.quantize(Sums(), items)(*items[0]).shape == (2, 3)


def test_nested_arguments():
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, states, options):
            return [self.layer(states[0]) + states[1], {"kept": self.layer(options["more"])}]

    net = Nested()
    items = [((a, b), {"more": c}) for a, b, c in samples((2, 4), (2, 4), (2, 4))]
    small = kilter.quantize(net, items)
    assert [port.name for port in small.model.inputs] == ["states.0", "states.1", "options.more"]
    (first, rest), (expected, others) = small(*items[0]), net(*items[0])
    assert torch.allclose(first, expected, atol=0.1)
    assert torch.allclose(rest["kept"], others["kept"], atol=0.1)


def test_a_model_that_takes_a_dict():
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, batch):
            return self.layer(batch["a"] + batch["b"])

    items = [{"a": a, "b": b} for a, b in samples((2, 4), (2, 4))]
    assert kilter.quantize(Takes(), items)(items[0]).shape == (2, 3)


def test_recurrent_networks_keep_their_states_apart_from_samples():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = nn.LSTM(4, 8, batch_first=True), nn.Linear(8, 2)

        def forward(self, x):
            output, (hidden, _) = self.cell(x)
            return self.head(output[:, -1]), hidden

    net = Recurrent()
    batches = [x for (x,) in samples((3, 5, 4))]
    small = kilter.quantize(net, batches)
    for count in (1, 3):
        (scores, hidden), (expected, state) = small(batches[0][:count]), net(batches[0][:count])
        assert torch.allclose(scores, expected, atol=0.05)
        assert hidden.shape == state.shape


@pytest.mark.parametrize("exporter", ["_trace", "_export_program"])
def test_both_exporters_of_pytorch_do(exporter, small, images, monkeypatch):
    monkeypatch.setattr(torch_export, "_exporters", lambda: [(exporter, getattr(torch_export, exporter))])
    module = kilter.quantize(small, [batch[:1] for batch in images])
    assert [port.name for port in module.model.inputs] == ["image"]
    assert torch.nn.functional.cosine_similarity(module(images[0]), small(images[0])).min() > 0.99


def test_an_export_that_computes_something_else_is_found_out():
    class Branches(nn.Module):
        """What is run depends on the numbers: no exporter can follow that."""

        def forward(self, x):
            return x * 2 if x.shape[0] < 4 and float(x.sum()) > 0 else x - 1

    with pytest.raises(kilter.Error, match="could not export the model"):
        kilter.quantize(Branches(), [torch.ones(3, 4)])


def test_inputs_that_are_numbers_of_other_types():
    class Typed(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.layer = nn.Embedding(100, 8), nn.Linear(8, 3)

        def forward(self, ids, keep):
            return self.layer(self.table(ids) * keep.unsqueeze(-1)), ids + 1, ~keep

    net = Typed()
    items = [(torch.randint(0, 100, (2, 5)), torch.rand(2, 5) > 0.5) for _ in range(4)]
    small = kilter.quantize(net, items)
    scores, ids, dropped = small(*items[0])
    assert torch.allclose(scores, net(*items[0])[0], atol=0.1)
    assert ids.dtype == torch.int64 and torch.equal(ids, items[0][0] + 1)
    assert dropped.dtype == torch.bool and torch.equal(dropped, ~items[0][1])


def test_arguments_that_are_ignored(tmp_path):
    """As the mask of many text models; it may be given, and goes nowhere."""

    class Ignores(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, mask, x, another):
            return {"x": self.layer(x)}

    net = Ignores()
    items = samples((2, 5), (2, 4), (2,))
    small = kilter.quantize(net, items)
    small.save(tmp_path / "small.onnx")
    for module in (small, kilter.torch.load(tmp_path / "small.onnx")):
        assert torch.allclose(module(*items[0])["x"], net(*items[0])["x"], atol=0.1)
    assert kilter.compare(net, small, items)[0].snr_db > 20


def test_half_precision_modules():
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).to(torch.bfloat16)
    x = torch.randn(3, 8, dtype=torch.bfloat16)
    bridge = kilter.frameworks.bridge_for(net)
    module = bridge.wrap(bridge.load(net, x), net)
    assert module(x).dtype == torch.bfloat16
    assert torch.allclose(module(x), net(x), atol=0.05)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_files_of_others_take_and_return_tensors_in_order(tmp_path):
    net = nn.Linear(4, 2)
    options = {"input_names": ["the.input"], "output_names": ["the.output"], "dynamo": False}
    torch.onnx.export(net, (torch.randn(3, 4),), str(tmp_path / "plain.onnx"), **options)
    x = torch.randn(3, 4)
    assert torch.allclose(kilter.torch.load(tmp_path / "plain.onnx")(x), net(x), atol=1e-5)
