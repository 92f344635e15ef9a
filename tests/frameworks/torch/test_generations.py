"""Document 001 with PyTorch itself: its code with only names changed, its three usages, and what comes back."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import kilter
from kilter.experimental import Benchmark, Quantization, common
from kilter.utils.utility import recover

CONF = """
model:
  name: blendcnn
  framework: pytorch

tuning:
  accuracy_criterion:
    relative:  0.01
  exit_policy:
    timeout: 0
  random_seed: 9527
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf.yaml").write_text(CONF)
    return tmp_path


@pytest.fixture(scope="module")
def labelled(small, images):
    inputs = torch.cat(images)
    with torch.no_grad():
        return inputs, small(inputs).argmax(1)


def accuracy_on(labelled):
    inputs, labels = labelled

    def eval_func(model):
        assert isinstance(model, torch.nn.Module)
        model.eval()
        with torch.no_grad():
            return (model(inputs).argmax(1) == labels).float().mean().item()

    return eval_func


def test_document_001(small, labelled):
    class Bert_DataLoader:
        def __init__(self, loader=None, batch_size=1):
            self.loader, self.batch_size = loader, batch_size

        def __iter__(self):
            for *inputs, label in self.loader:
                yield tuple(inputs), label

    eval_func = accuracy_on(labelled)
    data_iter = DataLoader(TensorDataset(*labelled), batch_size=8)

    dataloader = Bert_DataLoader(loader=data_iter, batch_size=8)
    quantizer = Quantization("conf.yaml")
    quantizer.model = small
    quantizer.calib_dataloader = dataloader
    quantizer.eval_func = eval_func
    q_model = quantizer()

    assert q_model.met and isinstance(q_model.model, torch.nn.Module)
    assert eval_func(q_model.model) == pytest.approx(quantizer.result.best.accuracy[0])
    q_model.save("saved")
    again = kilter.torch.load("saved/best_model.onnx")
    assert torch.equal(again(labelled[0]), q_model(labelled[0]))
    first = recover(small, quantizer.result.workspace, 0)
    assert isinstance(first.model, torch.nn.Module)
    assert eval_func(first.model) == pytest.approx(quantizer.result.trials[0].accuracy[0])


def test_loaders_given_and_the_metric_in_the_yaml(small, labelled):
    loader = DataLoader(TensorDataset(*labelled), batch_size=8)
    quantizer = Quantization({"evaluation": {"accuracy": {"metric": {"topk": 1}}}})
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_dataloader = small, loader, loader
    assert quantizer.fit().result.baseline.accuracy == (1.0,)


def test_a_metric_of_ones_own_gets_tensors(small, labelled):
    class Right:
        def reset(self):
            self.right = []

        def update(self, predictions, labels):
            assert isinstance(predictions, torch.Tensor) and isinstance(labels, torch.Tensor)
            self.right.append((predictions.argmax(1) == labels).float())

        def result(self):
            return torch.cat(self.right).mean()

    loader = DataLoader(TensorDataset(*labelled), batch_size=8)
    quantizer = Quantization("conf.yaml")
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_dataloader = small, loader, loader
    quantizer.metric = common.Metric(Right)
    assert quantizer.fit().result.baseline.accuracy == (1.0,)


def test_everything_in_the_yaml(small, labelled, here):
    np.save("images.npy", labelled[0].numpy())
    np.save("labels.npy", labelled[1].numpy())
    loader = {"batch_size": 8, "dataset": {"NumPy": {"root": "images.npy", "labels": "labels.npy"}}}
    quantizer = Quantization(
        {
            "model": {"name": "small", "framework": "pytorch"},
            "quantization": {"calibration": {"sampling_size": 16, "dataloader": loader}},
            "evaluation": {"accuracy": {"metric": {"topk": 1}, "dataloader": loader}},
        }
    )
    quantizer.model = small
    q_model = quantizer()
    assert q_model.result.baseline.accuracy == (1.0,) and isinstance(q_model.model, torch.nn.Module)


def test_the_first_generation_returns_the_module(small, labelled):
    quantizer = kilter.quantization.Quantization("conf.yaml")
    loader = quantizer.dataloader(
        TensorDataset(*labelled), batch_size=8, collate_fn=torch.utils.data.default_collate
    )
    q_model = quantizer(small, q_dataloader=loader, eval_func=accuracy_on(labelled))
    assert isinstance(q_model, torch.nn.Module) and quantizer.met


def test_benchmark(small, labelled, capsys):
    benchmark = Benchmark(
        {"evaluation": {"performance": {"warmup": 1, "iteration": 3}, "accuracy": {"metric": {"topk": 1}}}}
    )
    benchmark.model = small
    benchmark.b_dataloader = DataLoader(TensorDataset(*labelled), batch_size=8)
    benchmark("performance")
    benchmark("accuracy")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == printed[3] == "Batch size = 8" and printed[4] == "Accuracy is 1.0000"


def test_a_calibration_function_feeds_the_module(small, labelled, images):
    quantizer = Quantization("conf.yaml")
    quantizer.model = small
    quantizer.eval_dataloader = DataLoader(
        TensorDataset(*labelled), batch_size=8
    )  # shows what inputs look like
    quantizer.eval_func = accuracy_on(labelled)
    fed = []

    def q_func(model):
        with torch.no_grad():
            for batch in images:
                fed.append(batch.shape[0])
                model(batch)

    quantizer.q_func = q_func
    assert quantizer.fit().met and sum(fed) == len(labelled[1])


class Right:
    def __init__(self):
        self.reset()

    def reset(self):
        self.right = []

    def update(self, predictions, labels):
        self.right.append((np.asarray(predictions).argmax(1) == np.asarray(labels)).mean())

    def result(self):
        return float(np.mean(self.right))


def test_a_metric_of_ones_own_over_samples_of_the_yaml(small, labelled):
    np.save("images.npy", labelled[0].numpy())
    np.save("labels.npy", labelled[1].numpy())
    loader = {"batch_size": 8, "dataset": {"NumPy": {"root": "images.npy", "labels": "labels.npy"}}}
    conf = {
        "model": {"name": "small", "framework": "pytorch"},
        "quantization": {"calibration": {"dataloader": loader}},
        "evaluation": {"accuracy": {"metric": {"topk": 1}, "dataloader": loader}},
    }
    quantizer = Quantization(conf)
    quantizer.model, quantizer.metric = small, common.Metric(Right)
    assert quantizer.fit().result.baseline.accuracy == (1.0,)
    benchmark = Benchmark(conf)
    benchmark.model = small
    benchmark("accuracy")
    assert benchmark.results["accuracy"].accuracy == 1.0


def test_batches_of_numpy_arrays_do(small, labelled):
    samples = list(zip(labelled[0].numpy(), labelled[1].numpy(), strict=True))
    quantizer = Quantization("conf.yaml")
    loader = common.DataLoader(samples, batch_size=8)
    quantizer.model, quantizer.calib_dataloader, quantizer.eval_dataloader = small, loader, loader
    quantizer.metric = common.Metric(Right)
    assert quantizer.fit().result.baseline.accuracy == (1.0,)
