"""What data loaders may yield: kilter.tune and kilter.quantize take all of it."""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper

import kilter
from conftest import FIXTURE, make_model
from kilter.batches import Replay, begin, label_list, named, repeatable, separate
from study import SIZE, Study, batches

PORTS = {count: tuple(kilter.Port(name, "f32", ("n", 2)) for name in "abc"[:count]) for count in (1, 2, 3)}
X, Y = np.zeros((4, 2), np.float32), np.arange(4)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("batches"))


@pytest.mark.parametrize(
    ("count", "item", "inputs", "labels"),
    [
        (1, X, X, None),
        (1, (X, Y), X, Y),
        (1, [X, Y], X, Y),
        (1, namedtuple("Batch", "image label")(X, Y), X, Y),
        (1, [X], [X], None),
        (1, ([X], Y), [X], Y),
        (1, {"a": X, "label": Y}, {"a": X}, Y),
        (1, {"a": X}, {"a": X}, None),
        (2, (X, X), (X, X), None),
        (2, (X, X, Y), (X, X), Y),
        (2, ((X, X), Y), (X, X), Y),
        (2, ({"a": X, "b": X}, Y), {"a": X, "b": X}, Y),
        (2, {"a": X, "b": X, "labels": Y}, {"a": X, "b": X}, Y),
        (3, [X, X, X, Y], [X, X, X], Y),
        (1, SimpleNamespace(data=[X], label=[Y]), [X], Y),
        (1, SimpleNamespace(data=[X], label=None), [X], None),
    ],
)
def test_items_are_inputs_and_labels(count, item, inputs, labels):
    found = separate(item, count)
    assert np.array_equal(found[1], labels) if labels is not None else found[1] is None
    assert list(named(PORTS[count], found[0])) == [port.name for port in PORTS[count]]
    assert type(found[0]) is type(inputs)


def test_an_input_may_be_called_label():
    assert separate({"label": X}, 1) == ({"label": X}, None)


def test_items_that_cannot_be_meant_are_errors():
    with pytest.raises(kilter.InputTypeError, match=r"3 values .* 1 input .* pairs"):
        separate((X, X, Y), 1)
    with pytest.raises(kilter.InputValueError, match="no input 'q', its inputs are a, b"):
        named(PORTS[2], {"a": X, "q": X})
    with pytest.raises(kilter.InputValueError, match="'b' is missing"):
        named(PORTS[2], {"a": X})
    with pytest.raises(kilter.InputTypeError, match="must map input names"):
        named(PORTS[2], X)


def test_labels_become_one_entry_for_each_sample():
    assert label_list(3) == [{"label": 3}]
    assert label_list([[1, 2], [3, 4]]) == [{"label": [1, 2]}, {"label": [3, 4]}]
    assert [entry["label"] for entry in label_list([Y])] == [0, 1, 2, 3]
    assert label_list({"boxes": [[1], [2]], "classes": [3, 4]}) == [
        {"boxes": [1], "classes": 3},
        {"boxes": [2], "classes": 4},
    ]


def test_iterators_that_are_told_to_start_again_are():
    class Records:
        """As MXNet's: it is its own iterator, and goes on where it was."""

        def __init__(self):
            self.next = 0

        def reset(self):
            self.next = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.next += 1
            if self.next > 3:
                raise StopIteration
            return self.next

    records = Records()
    assert [list(begin(records)) for _ in range(2)] == [[1, 2, 3]] * 2
    assert repeatable(records) is records


def test_what_can_be_read_once_is_kept():
    replay = repeatable(iter(range(4)))
    assert isinstance(replay, Replay)
    first = iter(replay)
    assert [next(first), next(first)] == [0, 1]
    assert list(replay) == [0, 1, 2, 3] and list(first) == [2, 3] and list(replay) == [0, 1, 2, 3]


def test_all_forms_of_data_give_the_same_result(study):
    path = study.folder / "model.onnx"

    class Loader:
        batch_size = 20

        def __iter__(self):
            return iter(batches(study))

    forms = {
        "pairs": batches(study),
        "lists": [list(pair) for pair in batches(study)],
        "loader": Loader(),
        "dicts": [{"image": images, "label": labels} for images, labels in batches(study)],
        "mxnet": [SimpleNamespace(data=[images], label=[labels]) for images, labels in batches(study)],
    }
    found = {
        name: kilter.tune(path, data, metric="topk", data=data, max_trials=2, **SIZE).best.accuracy
        for name, data in forms.items()
    }
    assert len(set(found.values())) == 1, found


def test_batches_are_cut_for_models_that_fix_theirs():
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 3, 1, 1], np.eye(3).ravel())
    model = make_model(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")],
        [("x", TensorProto.FLOAT, [2, 3, 8, 8])],
        [("y", TensorProto.FLOAT, [2, 3, 8, 8])],
        [weights],
    ).SerializeToString()
    images = np.random.default_rng(0).normal(size=(6, 3, 8, 8)).astype(np.float32)
    stats = kilter.calibrate(model, [(images, np.zeros(6))])
    assert stats == kilter.calibrate(model, [images[0:2], images[2:4], images[4:6]])
    with pytest.raises(kilter.InputValueError, match=r"shape \[5, 3, 8, 8\]"):
        kilter.calibrate(model, [images[:5]])


def test_results_of_operators_can_be_looked_at():
    images = np.load(FIXTURE / "images.npy")[:1].astype(np.float32) / 255
    model = kilter.load(FIXTURE / "model.onnx", threads=1)
    name = model.inputs[0].name
    seen = model.inspect({name: images})
    (logits,) = model.run({name: images}).values()
    assert np.array_equal(list(seen.values())[-1].ravel(), logits.ravel())
    small = kilter.quantize(model, [images], threads=1)
    quantized = small.inspect({name: images})
    on_integers = [entry.name for entry in small.report.operators if entry.precision == "int8"]
    assert set(on_integers) <= set(seen) and set(on_integers) <= set(quantized)
    drifts = {drift.name: drift for drift in kilter.compare(model, small, [images])}
    for operator in on_integers:
        error = np.abs(seen[operator] - quantized[operator]).max()
        assert error == pytest.approx(drifts[operator].max_error, rel=1e-4), operator


def refilled(study):
    """A loader that fills the same two arrays for every batch."""
    images, labels = np.empty_like(study.images[:20]), np.empty_like(study.labels[:20])

    class Loader:
        def __iter__(self):
            for first in range(0, len(study.images), 20):
                images[:] = study.images[first : first + 20]
                labels[:] = study.labels[first : first + 20]
                yield images, labels

    return Loader()


@pytest.mark.parametrize("once", [False, True], ids=["again", "once"])
def test_a_loader_may_fill_its_arrays_anew(study, once):
    path = study.folder / "model.onnx"
    quick = {"max_trials": 1, "max_loss": "abs:1", "objective": "modelsize"}
    expected = kilter.tune(path, metric="topk", data=batches(study), **quick)
    data = iter(refilled(study)) if once else refilled(study)
    found = kilter.tune(path, metric="topk", data=data, **quick)
    assert found.baseline.accuracy == expected.baseline.accuracy
    assert found.best.accuracy == expected.best.accuracy
    images = [images for images, _ in batches(study)]
    ranges = kilter.quantize(path, images).plan
    assert kilter.quantize(path, (images for images, _ in refilled(study))).plan == ranges
