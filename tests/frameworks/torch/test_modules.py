"""nn.Module in, nn.Module out."""

import copy
import pickle
import threading
import time

import onnxruntime
import pytest
import torch
from torch import nn

import kilter


def agreement(a, b):
    return torch.nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0).item()


@pytest.fixture(scope="module")
def quantized(small, images):
    return kilter.quantize(small, images)


def test_a_module_comes_back_as_one(small, images, quantized):
    assert isinstance(quantized, nn.Module)
    assert isinstance(quantized.model, kilter.QuantizedModel)
    assert "int8" in {entry.precision for entry in quantized.model.report.operators}
    with torch.no_grad():
        assert agreement(quantized(images[0]), small(images[0])) > 0.99


def test_any_number_of_samples_may_come(small, quantized):
    for count in (1, 2, 7):
        batch = torch.randn(count, 3, 16, 16)
        assert quantized(batch).shape == (count, 10)
        assert agreement(quantized(batch), small(batch)) > 0.99


def test_the_original_is_left_as_it_was(images):
    torch.manual_seed(2)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.ReLU())
    module[1].eval()
    before = copy.deepcopy(module.state_dict())
    modes = [part.training for part in module.modules()]
    state = torch.get_rng_state()
    kilter.quantize(module, images)
    assert [part.training for part in module.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in module.parameters())
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()


def test_evaluation_loops_work(images, quantized):
    module = quantized.eval().to("cpu")
    assert not module.training
    assert module.state_dict() == {}
    assert list(module.parameters()) == []
    with torch.no_grad():
        assert [module(batch).argmax(1).shape for batch in images] == [(4,)] * len(images)
    module.train()
    assert not module.training


def test_memory_is_shared_both_ways(images, quantized):
    """What the engine reads is the tensor's memory; what it returns belongs to the tensor alone."""
    batch = images[0].clone()
    output = quantized(batch)
    kept = output.clone()
    output.add_(1)  # may be written
    again = quantized(batch)
    assert torch.equal(again, kept)
    assert again.data_ptr() != output.data_ptr()
    pointers = []
    session = quantized.model._session

    class Spy:
        def run(self, inputs):
            pointers.extend(array.__array_interface__["data"][0] for array, _ in inputs)
            self.results = session.run(inputs)
            return self.results

    spy = Spy()
    quantized.model._session = spy
    try:
        result = quantized(batch)
    finally:
        quantized.model._session = session
    assert pointers == [batch.data_ptr()]
    assert spy.results[0][0].__array_interface__["data"][0] == result.data_ptr()


def test_tensors_in_any_memory_order_are_read(images, quantized):
    batch = images[0]
    channels_last = batch.to(memory_format=torch.channels_last)
    assert torch.equal(quantized(channels_last), quantized(batch))
    assert torch.equal(quantized(batch.clone().requires_grad_()), quantized(batch))


def test_saved_and_loaded_without_the_original(tmp_path, images, quantized):
    expected = quantized(images[0])
    torch.save(quantized, tmp_path / "module.pt")
    assert torch.equal(torch.load(tmp_path / "module.pt", weights_only=False)(images[0]), expected)
    quantized.save(tmp_path / "int8.onnx")
    loaded = kilter.torch.load(tmp_path / "int8.onnx")
    assert torch.equal(loaded(images[0]), expected)
    assert torch.equal(loaded(image=images[0]), expected)
    assert torch.equal(pickle.loads(pickle.dumps(loaded))(images[0]), expected)
    assert torch.equal(copy.deepcopy(quantized)(images[0]), expected)


def test_the_file_runs_in_onnx_runtime(tmp_path, images, quantized):
    quantized.export(tmp_path / "int8.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "int8.onnx", providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"image": images[0].numpy()})[0]
    assert agreement(torch.from_numpy(theirs), quantized(images[0])) > 0.999


def test_tuning_gives_the_evaluation_function_modules(small, images):
    seen = []
    truth = [small(batch).argmax(1) for batch in images]

    def evaluate(module):
        seen.append(module)
        module.eval()
        with torch.no_grad():
            hits = sum(
                (module(batch).argmax(1) == labels).sum() for batch, labels in zip(images, truth, strict=True)
            )
        return hits / 32

    result = kilter.tune(small, images, evaluate=evaluate, max_loss="10%")
    assert all(isinstance(module, nn.Module) for module in seen) and len(seen) >= 2
    assert isinstance(result.model, kilter.torch.Module)
    assert result.model.model is result.quantized
    assert result.met and result.baseline.accuracy == (1.0,)
    with pytest.raises(kilter.Error, match="lent for one evaluation"):
        seen[-1](images[0])


def test_tuning_with_a_metric_reads_a_data_loader(small, images):
    inputs = torch.cat(images)
    dataset = torch.utils.data.TensorDataset(inputs, small(inputs).argmax(1))
    loader = torch.utils.data.DataLoader(dataset, batch_size=8)
    result = kilter.tune(small, metric="topk", data=loader, max_loss="10%")
    assert result.baseline.accuracy == (1.0,)
    # As calibration samples the same pairs will do: forward takes one tensor, the other is a label.
    assert isinstance(kilter.quantize(small, loader), nn.Module)


def test_other_functions_take_modules(small, images, quantized):
    rows = kilter.sensitivity(small, images)
    assert {row.op for row in rows} >= {"Conv"}
    drifts = kilter.compare(small, quantized, images)
    assert drifts[0].op == "output" and drifts[0].snr_db > 20
    stats = kilter.calibrate(small, images)
    assert torch.equal(kilter.quantize(small, images, stats=stats)(images[0]), quantized(images[0]))


def test_what_came_out_goes_in_again(images, quantized):
    pairs = [(batch, torch.zeros(4)) for batch in images]
    assert kilter.compare(quantized, quantized, pairs)[0].snr_db == float("inf")
    with pytest.raises(kilter.Error, match="quantized already"):
        kilter.quantize(quantized, pairs)


def test_a_generator_of_samples_loses_none(small, images, quantized):
    module = kilter.quantize(small, (batch for batch in images))
    assert torch.equal(module(images[0]), quantized(images[0]))


def test_samples_may_be_arrays(small, images, quantized):
    module = kilter.quantize(small, [batch.numpy() for batch in images])
    assert torch.equal(module(images[0]), quantized(images[0]))


def test_threads_may_share_a_module(images, quantized):
    expected = quantized(images[0])
    results = []

    def work():
        for _ in range(200):
            results.append(torch.equal(quantized(images[0]), expected))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 400


def test_python_goes_on_while_a_module_runs():
    """The main thread sees the middle of a long call in another one: the lock of the interpreter is free then."""
    torch.manual_seed(0)
    layers = [nn.Linear(2048, 2048) for _ in range(4)]
    batch = torch.randn(1024, 2048)
    module = kilter.quantize(nn.Sequential(*layers), [batch[:64]], threads=1)
    module(batch)
    for _ in range(20):  # a busy machine may not let the main thread run just then
        times = []
        span = []

        def call(span=span):
            start = time.perf_counter()
            module(batch)
            span.extend((start, time.perf_counter()))

        thread = threading.Thread(target=call)
        thread.start()
        while thread.is_alive():
            times.append(time.perf_counter())
        start, end = span
        quarter = (end - start) / 4
        if any(start + quarter < moment < end - quarter for moment in times):
            return
    raise AssertionError("the main thread never ran in the middle of a call")


def test_errors_say_what_is_wrong(small, images, quantized):
    with pytest.raises(kilter.InputTypeError, match=r"'image' has elements of type torch.float64"):
        quantized(images[0].double())
    with pytest.raises(kilter.Error, match=r"channels|shape"):
        quantized(torch.randn(1, 4, 16, 16))
    with pytest.raises(kilter.InputValueError, match=r"missing a required argument|exported for"):
        quantized()
    with pytest.raises(kilter.InputTypeError, match="no samples"):
        kilter.quantize(small, [])
    with pytest.raises(kilter.InputTypeError, match="no tensor"):
        kilter.quantize(small, [3])


def test_stubs_and_fused_modules_are_accepted(small, images):
    from torch.ao.quantization import DeQuantStub, QuantStub, fuse_modules

    class Stubbed(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.body, self.dequant = QuantStub(), copy.deepcopy(small), DeQuantStub()

        def forward(self, image):
            return self.dequant(self.body(self.quant(image)))

    stubbed = Stubbed()
    fused = fuse_modules(copy.deepcopy(stubbed).eval(), [["body.first.0", "body.first.1", "body.first.2"]])
    plain = kilter.quantize(small, images)(images[0])
    assert torch.equal(kilter.quantize(stubbed, images)(images[0]), plain)
    assert agreement(kilter.quantize(fused, images)(images[0]), plain) > 0.999


class Declared(nn.Module):
    """With defaults that no file can hold, and one that it can."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, stretch=(1, 2), act=torch.relu, dtype=torch.float32, **more):
        y = act(self.linear(x)).to(dtype) * stretch[1]
        return y + more["bias"] - more["shift"] if more else y


def test_defaults_of_any_kind():
    torch.manual_seed(3)
    module, batch = Declared().eval(), torch.randn(8, 4)
    small = kilter.quantize(module, [batch])
    for result in (small(batch), small(x=batch), small(batch, (1, 2)), small(batch, stretch=[1, 2])):
        assert agreement(result, module(batch)) > 0.99
    with pytest.raises(kilter.InputValueError, match="exported for the arguments"):
        small(batch, (1, 3))


def test_named_arguments_in_any_order():
    torch.manual_seed(4)
    module, batch = Declared().eval(), torch.randn(8, 4)
    named = {"bias": torch.randn(8, 4), "shift": torch.randn(8, 4)}
    small = kilter.quantize(module, [{"x": batch, **named}])
    swapped = {"shift": named["shift"], "bias": named["bias"]}
    assert torch.equal(small(batch, **named), small(batch, **swapped))
    assert agreement(small(batch, **named), module(batch, **named)) > 0.99


class OneSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.offsets = nn.Parameter(torch.randn(8, 4))

    def forward(self, x):
        return self.linear(x) + self.offsets


def test_a_module_that_takes_one_size_of_batches_only():
    torch.manual_seed(5)
    module, batch = OneSize().eval(), torch.randn(8, 4)
    with pytest.warns(UserWarning, match="batches of 8 only"):
        small = kilter.quantize(module, [batch])
    assert agreement(small(batch), module(batch).detach()) > 0.99


def test_errors_of_exporters_are_kept():
    class Broken(nn.Module):
        def forward(self, x):
            if torch.jit.is_tracing() or torch.compiler.is_exporting():
                raise ValueError("not today")
            return x * 2

    with pytest.raises(kilter.Error, match="not today") as caught:
        kilter.quantize(Broken(), [torch.randn(2, 3)])
    assert caught.value.__cause__ is not None
