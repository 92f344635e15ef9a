#!/usr/bin/env python3
"""Are two sentences paraphrases? Trains BlendCNN on MRPC, tunes it to INT8 with kilter, and measures both.

python classify.py --model_config config/blendcnn/mrpc/train.json      trains; the model is models/model_final.pt
./run_tuning.sh, ./run_benchmark.sh                                     what comes after
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

import kilter
from data import read
from kilter.experimental import Quantization
from metrics import evaluate
from models import BlendCNN
from training import initialize, load_embeddings, train

HERE = Path(__file__).resolve().parent
FP32, INT8 = "model_final.pt", "model_int8.onnx"


class PairLoader:
    """Batches of (tokens, segments) with their labels, as the tuner reads them."""

    def __init__(self, loader: torch.utils.data.DataLoader, batch_size: int):
        self.loader, self.batch_size = loader, batch_size

    def __iter__(self):
        for tokens, segments, labels in self.loader:
            yield (tokens, segments), labels


def in_folder(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path


def load_fp32(path: Path) -> tuple[BlendCNN, dict]:
    """The trained model and its configuration."""
    stored = torch.load(in_folder(path, FP32), weights_only=True)
    model = BlendCNN(**stored["config"]["model"])
    model.load_state_dict(stored["state"])
    return model.eval(), stored["config"]


def load_int8(path: Path) -> tuple[torch.nn.Module, dict]:
    """The INT8 model needs nothing of PyTorch's but its tensors; the configuration lies beside it."""
    file = in_folder(path, INT8)
    return kilter.torch.load(file), json.loads((file.parent / "config.json").read_text())


def run_training(args: argparse.Namespace) -> None:
    config = json.loads(args.model_config.read_text())
    length = config["length"]
    torch.manual_seed(config["training"]["seed"])
    model = BlendCNN(**config["model"])
    initialize(model)
    if args.embeddings:
        load_embeddings(model, args.embeddings)
        print(f"embeddings from {args.embeddings.name}")
    parts = {
        name: read(args.dataset_location / f"{name}.tsv", args.vocab, length) for name in ("train", "dev")
    }
    model = train(model, parts["train"], parts["dev"], config["training"], length)
    args.input_model.mkdir(parents=True, exist_ok=True)
    torch.save({"config": config, "state": model.state_dict()}, args.input_model / FP32)
    print(f"saved {args.input_model / FP32}")


def run_tuning(args: argparse.Namespace) -> None:
    """The promise is about dev, which training did not see; test is for the figures in the end."""
    model, config = load_fp32(args.input_model)
    calibration = read(args.dataset_location / "train.tsv", args.vocab, config["length"])
    dev = read(args.dataset_location / "dev.tsv", args.vocab, config["length"])
    loader = torch.utils.data.DataLoader(calibration, batch_size=args.batch_size)

    def eval_func(model: torch.nn.Module) -> float:
        return evaluate(model, dev).balanced

    quantizer = Quantization(str(args.tuned_yaml))
    quantizer.model = model
    quantizer.calib_dataloader = PairLoader(loader, args.batch_size)
    quantizer.eval_func = eval_func
    q_model = quantizer()
    args.output_model.mkdir(parents=True, exist_ok=True)
    q_model.model.save(args.output_model / INT8)
    (args.output_model / "config.json").write_text(json.dumps(config, indent=2))
    print(f"saved {args.output_model / INT8}, promise kept: {q_model.met}")


def measure_speed(model: torch.nn.Module, config: dict, args: argparse.Namespace) -> None:
    generator = torch.Generator().manual_seed(0)
    shape = (args.batch_size, config["length"])
    times = []
    with torch.no_grad():
        for _ in range(10 + -(-args.samples // args.batch_size)):
            tokens = torch.randint(0, config["model"]["vocabulary"], shape, generator=generator)
            segments = torch.randint(0, 2, shape, generator=generator)
            start = time.perf_counter()
            model(tokens, segments)
            times.append(time.perf_counter() - start)
    middle = statistics.median(times[10:])
    print(f"Latency: {middle / args.batch_size * 1000:.3f} ms")
    print(f"Throughput: {args.batch_size / middle:.3f} images/sec")


def measure_accuracy(model: torch.nn.Module, config: dict, args: argparse.Namespace) -> None:
    dataset = read(args.dataset_location / f"{args.split}.tsv", args.vocab, config["length"])
    start = time.perf_counter()
    figures = evaluate(model, dataset, args.batch_size)
    print(f"Throughput: {len(dataset) / (time.perf_counter() - start):.3f} samples/sec")
    print(f"Accuracy: {figures.accuracy:.3f} ")
    print(f"F1: {figures.f1:.3f}")
    print(f"Balanced accuracy: {figures.balanced:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add(
        "--model_config",
        type=Path,
        default=HERE / "config/blendcnn/mrpc/train.json",
        help="network and training",
    )
    add(
        "--dataset_location",
        type=Path,
        default=Path("MRPC"),
        help="folder with train.tsv, dev.tsv and test.tsv",
    )
    add("--vocab", type=Path, default=Path("models/vocab.txt"), help="BERT's uncased vocabulary")
    add("--embeddings", type=Path, help="checkpoint of a BERT whose embeddings to start from")
    add("--input_model", type=Path, default=Path("models"), help="folder or file of the model")
    add("--output_model", type=Path, default=Path("saved_results"), help="folder for the INT8 model")
    add("--tuned_yaml", type=Path, default=HERE / "blendcnn.yaml", help="configuration of the tuner")
    add("--tune", action="store_true", help="find the INT8 model")
    add("--benchmark", action="store_true", help="measure latency and throughput on random samples")
    add("--accuracy", action="store_true", help="measure accuracy and F1")
    add("--int8", action="store_true", help="measure the INT8 model")
    add("--split", default="test", choices=["train", "dev", "test"], help="what accuracy is measured on")
    add("--batch_size", type=int, default=32)
    add("--samples", type=int, default=5000, help="random samples of --benchmark")
    args = parser.parse_args()
    if args.tune:
        return run_tuning(args)
    if args.benchmark or args.accuracy:
        model, config = load_int8(args.input_model) if args.int8 else load_fp32(args.input_model)
        measure = measure_speed if args.benchmark else measure_accuracy
        return measure(model, config, args)
    return run_training(args)


if __name__ == "__main__":
    main()
