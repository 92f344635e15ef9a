#!/usr/bin/env python3
"""One model, one data set, three tools: MXNet's own quantization, Intel Neural Compressor 1.13.1 on it, and kilter.

Runs in the environment of MXNet (tools/framework_env.sh mxnet). Every row is made once, which is its cost; then all rows take
turns over all images, and speed-ups are formed between passes of the same round. The tables show medians.

    build/venvs/mxnet/bin/python bench/mxnet_duel.py cifar_resnet20_v1 --output duel    # duel.md, duel.json, duel.svg
    build/venvs/mxnet/bin/python bench/mxnet_duel.py resnet50_v1 --images 64 --rounds 3 --rows mxnet,kilter

cifar_resnet20_v1, 20_v2 and 56_v2 are real networks on real images (KILTER_DATA). The others are those of Gluon's model zoo
with random weights: the times are meant there. Their labels are what FP32 says, and any loss is accepted.
"""

import argparse
import contextlib
import json
import logging
import os
import platform
import statistics
import sys
import tempfile
import time
import types
from dataclasses import dataclass, field
from pathlib import Path

# MXNet fuses FP32 models on its own otherwise, and miscomputes some of them.
os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "mxnet"))

import mxnet as mx
import numpy as np
from mxnet.contrib.quantization import quantize_net_v2
from mxnet.gluon.model_zoo import vision

import custom_strategy  # noqa: F401, registers mycustom with kilter
import duel_report
import kilter

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "mxnet"
DATA = Path(os.environ.get("KILTER_DATA", ROOT.parent / "shared" / "data"))
CIFAR = ("cifar_resnet20_v1", "cifar_resnet20_v2", "cifar_resnet56_v2")
# Ranges are symmetric in MXNet, so all tools have the same.
SCHEME = "sym"
# Engines' threads spin for a while after their last run; the next one starts when they are asleep.
SETTLE_SECONDS = 0.25


@dataclass
class Row:
    """One way to run the model. `call` takes an NDArray."""

    name: str
    cost: float = 0.0
    trials: int = 0
    met: bool | None = None
    note: str = ""
    top1: float = 0.0
    top5: float = 0.0
    seconds: list[float] = field(default_factory=list)
    call: object = None


class Task:
    """The model, its images and what is promised about it."""

    def __init__(self, arguments):
        self.name, self.batch = arguments.model, arguments.batch
        self.real = self.name in CIFAR
        self.loss = arguments.max_loss if arguments.max_loss is not None else (0.001 if self.real else 0.99)
        self.max_trials = arguments.max_trials
        images, labels = self._images("test1000", arguments.images)
        calibration, _ = self._images("calib500", arguments.calibration)
        self.samples = len(calibration)
        self.prefix = str(Path(arguments.folder) / "fp32")
        if self.real:
            for suffix in ("-symbol.json", "-0000.params"):
                source = DATA / "mxnet_cifar10" / f"{self.name}{suffix}"
                Path(self.prefix + suffix).write_bytes(source.read_bytes())
        else:
            self._random(calibration)
        self.images = [mx.nd.array(part) for part in self._parts(images)]
        self.calibration = [mx.nd.array(part) for part in self._parts(calibration)]
        if labels is None:
            block = self.block()
            labels = np.concatenate([block(x).asnumpy().argmax(1) for x in self.images])
        self.labels = self._parts(labels)

    def _parts(self, array):
        return [array[start : start + self.batch] for start in range(0, len(array), self.batch)]

    def _images(self, name, count):
        if not self.real:
            random = np.random.default_rng(len(name))
            coarse = random.standard_normal((count, 3, 14, 14)).astype(np.float32)
            return np.kron(coarse, np.ones((1, 1, 16, 16), np.float32)), None
        from PIL import Image

        with Image.open(DATA / "cifar10" / f"{name}.png") as file:
            x = np.asarray(file.convert("RGB"), np.float32)[:count].reshape(-1, 32, 32, 3) / 255
        x = (x - np.float32([0.4914, 0.4822, 0.4465])) / np.float32([0.2023, 0.1994, 0.2010])
        labels = np.loadtxt(DATA / "cifar10" / f"{name}_labels.txt", dtype=int)[:count]
        return np.ascontiguousarray(x.transpose(0, 3, 1, 2)), labels

    def _random(self, calibration):
        """Random weights, and statistics of batch normalization that fit them, so that values keep their size."""
        mx.random.seed(1)
        block = getattr(vision, self.name)()
        block.initialize(mx.init.Xavier(magnitude=2))
        with mx.autograd.train_mode():
            for _ in range(8):
                block(mx.nd.array(calibration[: min(8, len(calibration))])).wait_to_read()
        block.hybridize()
        block(mx.nd.array(calibration[:1])).wait_to_read()
        block.export(self.prefix)

    def block(self):
        """A new one: tools change what they are given."""
        return mx.gluon.SymbolBlock.imports(
            f"{self.prefix}-symbol.json", ["data"], f"{self.prefix}-0000.params"
        )

    def loader(self):
        """A fresh one of the calibration samples, with labels as MXNet's tools want them."""
        samples = np.concatenate([part.asnumpy() for part in self.calibration])
        data = mx.gluon.data.ArrayDataset(samples, np.zeros(len(samples), np.float32))
        loader = mx.gluon.data.DataLoader(data, self.batch)
        loader.batch_size = self.batch
        return loader

    def evaluate(self, model):
        """Top-1, as a user of any of the tools would write it."""
        metric = mx.metric.Accuracy()
        for x, labels in zip(self.images, self.labels, strict=True):
            metric.update([mx.nd.array(labels)], [model(x)])
        return metric.get()[1]

    def accuracy(self, model):
        """Top-1 and top-5."""
        right = np.zeros(2)
        for x, labels in zip(self.images, self.labels, strict=True):
            ranked = np.argsort(-model(x).asnumpy(), axis=1)[:, :5]
            hits = ranked == np.asarray(labels)[:, None]
            right += hits[:, 0].sum(), hits.any(1).sum()
        return right / sum(len(part) for part in self.labels)

    def fused(self):
        symbol, arguments, states = mx.model.load_checkpoint(self.prefix, 0)
        symbol = symbol.get_backend_symbol("MKLDNN")
        block = mx.gluon.SymbolBlock(symbol, [mx.sym.var("data")])
        block.collect_params().load_dict(arguments | states, ctx=mx.cpu())
        return block


def mxnet_rows(task):
    yield "mxnet fp32", lambda row: task.block()
    yield "mxnet fp32 fused", lambda row: task.fused()
    for mode in ("full", "smart"):
        for calibration in ("naive", "entropy"):

            def make(row, mode=mode, calibration=calibration):
                data = mx.io.NDArrayIter(
                    np.concatenate([part.asnumpy() for part in task.calibration]), None, task.batch
                )
                return quantize_net_v2(
                    task.block(), quantize_mode=mode, calib_mode=calibration, calib_data=data, ctx=mx.cpu()
                )

            yield f"mxnet int8 {mode} {calibration}", make


def import_for_inc(name):
    """An example with the other tool's classes in place of kilter's: only the imports differ."""
    module = types.ModuleType(f"inc_{name}")
    source = (EXAMPLES / f"{name}.py").read_text().replace("from kilter.", "from neural_compressor.")
    sys.modules[module.__name__] = module  # it pickles what is defined there
    exec(source, module.__dict__)


def inc_rows(task):
    def make(row, strategy):
        from neural_compressor.experimental import Quantization
        from neural_compressor.strategy.strategy import STRATEGIES

        logging.getLogger().setLevel(logging.ERROR)
        if strategy == "mycustom" and strategy not in STRATEGIES:
            import_for_inc("custom_strategy")
        folder = tempfile.mkdtemp(dir=Path(task.prefix).parent)
        conf = Path(folder) / "conf.yaml"
        conf.write_text(
            "version: 1.0\n"
            "model: {name: duel, framework: mxnet}\n"
            f"quantization: {{calibration: {{sampling_size: {task.samples}}}}}\n"
            "tuning:\n"
            f"  strategy: {{name: {strategy}}}\n"
            f"  accuracy_criterion: {{relative: {task.loss}}}\n"
            f"  exit_policy: {{timeout: 0, max_trials: {task.max_trials}}}\n"
            "  random_seed: 9527\n"
            f"  workspace: {{path: {folder}}}\n"
        )
        quantizer = Quantization(str(conf))
        quantizer.model = task.block()
        quantizer.calib_dataloader = task.loader()
        evaluations = []

        def evaluate(model):
            evaluations.append(task.evaluate(model))
            return evaluations[-1]

        quantizer.eval_func = evaluate
        found = quantizer.fit()
        row.trials = len(evaluations) - 1
        row.met = found is not None
        if found is None:
            row.note = "nothing found"
            return None
        return found.model

    for strategy in ("basic", "mse", "mycustom"):
        yield f"inc {strategy}", lambda row, strategy=strategy: make(row, strategy)


def kilter_rows(task):
    def ndarrays(model):
        """A kilter.Model that takes NDArrays, as what kilter makes of a block does."""
        output = model.outputs[0].name
        return lambda x: mx.nd.from_numpy(model.run({"data": x.asnumpy()})[output], zero_copy=True)

    shapes = {"data": (-1, *task.images[0].shape[1:])}
    yield "kilter fp32", lambda row: ndarrays(kilter.load(task.prefix, shapes=shapes, optimize=False))
    yield "kilter fp32 fused", lambda row: ndarrays(kilter.load(task.prefix, shapes=shapes))
    for name, algorithm in (("naive", "minmax"), ("entropy", "kl")):
        yield (
            f"kilter int8 {name}",
            lambda row, algorithm=algorithm: kilter.quantize(
                task.block(), task.calibration, algorithm=algorithm, scheme=SCHEME
            ),
        )

    def tuned(row, strategy):
        result = kilter.tune(
            task.block(),
            calibration=task.calibration,
            evaluate=task.evaluate,
            max_loss=task.loss,
            strategy=strategy,
            samples=task.samples,
            max_trials=task.max_trials,
            seed=9527,
            scheme=SCHEME,
            progress=False,
        )
        row.trials, row.met = len(result.trials), result.met
        row.note = result.best.operators
        return result.model

    for strategy in ("basic", "mse", "bayesian", "auto", "mycustom"):
        yield f"kilter {strategy}", lambda row, strategy=strategy: tuned(row, strategy)


def make_rows(task, wanted):
    rows = []
    for name, make in [*mxnet_rows(task), *inc_rows(task), *kilter_rows(task)]:
        if wanted and not any(name.startswith(entry) for entry in wanted):
            continue
        row = Row(name)
        print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
        start = time.perf_counter()
        row.call = make(row)
        row.cost = time.perf_counter() - start
        print(f"{row.cost:.2f} s", file=sys.stderr, flush=True)
        rows.append(row)
        if row.call is not None:
            row.top1, row.top5 = task.accuracy(row.call)
    return rows


def validate(task, rows, rounds):
    """Every round runs every row over all images once."""
    rows = [row for row in rows if row.call is not None]
    for _ in range(rounds):
        for row in rows:
            time.sleep(SETTLE_SECONDS)
            row.call(task.images[0]).wait_to_read()  # wakes the threads
            start = time.perf_counter()
            for x in task.images:
                row.call(x).wait_to_read()
            row.seconds.append(time.perf_counter() - start)


def finished(rows):
    """What the report shows, relative to the first row."""
    base = rows[0]
    entries = []
    for row in rows:
        entry = {key: value for key, value in vars(row).items() if key not in ("call", "seconds")}
        if row.seconds:
            entry["validation"] = statistics.median(row.seconds)
            pairs = zip(base.seconds, row.seconds, strict=True)
            entry["speedup"] = statistics.median(before / after for before, after in pairs)
            entry["loss1"] = 100 * (base.top1 - row.top1) / base.top1
            entry["loss5"] = 100 * (base.top5 - row.top5) / base.top5
        entries.append(entry)
    return entries


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "model", nargs="?", default=CIFAR[0], help="a network of CIFAR-10, or of Gluon's model zoo"
    )
    parser.add_argument("--images", type=int, help="evaluated and timed (1000; 64 with random weights)")
    parser.add_argument("--calibration", type=int, help="samples to calibrate with (500; 32)")
    parser.add_argument("--batch", type=int, help="images of one run (64; 16)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="passes over the images for the times (%(default)s)"
    )
    parser.add_argument("--max-loss", type=float, help="of top-1, relative (0.001; 0.99 with random weights)")
    parser.add_argument("--max-trials", type=int, default=100, help="of every search (%(default)s)")
    parser.add_argument(
        "--rows", default="", help="beginnings of names, with commas: 'mxnet fp32,inc,kilter auto'"
    )
    parser.add_argument("--output", help="writes OUTPUT.md, OUTPUT.json and OUTPUT.svg")
    arguments = parser.parse_args()
    real = arguments.model in CIFAR
    for name, real_value, random_value in (("images", 1000, 64), ("calibration", 500, 32), ("batch", 64, 16)):
        if getattr(arguments, name) is None:
            setattr(arguments, name, real_value if real else random_value)
    wanted = [entry.strip() for entry in arguments.rows.split(",") if entry.strip()]
    if wanted:
        wanted.append("mxnet fp32")  # what the others are compared with
    with tempfile.TemporaryDirectory(prefix="kilter-duel-") as folder, contextlib.chdir(folder):
        arguments.folder = folder
        task = Task(arguments)
        rows = make_rows(task, wanted)
        validate(task, rows, arguments.rounds)
    report = {
        "model": arguments.model,
        "images": arguments.images,
        "batch": arguments.batch,
        "rounds": arguments.rounds,
        "max_loss": task.loss,
        "versions": {
            "mxnet": mx.__version__,
            "kilter": kilter.__version__,
            "python": platform.python_version(),
        },
        "cores": os.cpu_count(),
        "rows": finished(rows),
    }
    text = duel_report.markdown(report)
    print(text)
    if arguments.output:
        for ending, content in (
            (".md", text),
            (".json", json.dumps(report, indent=2) + "\n"),
            (".svg", duel_report.plot(report)),
        ):
            Path(arguments.output + ending).write_text(content)


if __name__ == "__main__":
    main()
