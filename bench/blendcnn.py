#!/usr/bin/env python3
"""BlendCNN: PyTorch in FP32 beside kilter in INT8, called in turn on the same batches; medians.

    build/venvs/torch/bin/python bench/blendcnn.py --fp32 models --int8 saved_results

The folders are those of examples/pytorch/blendcnn_mrpc. Without them the network has random weights: the times are the same.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch

import kilter

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "pytorch" / "blendcnn_mrpc"
LENGTH = 128


def random_batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(1000, 30000, (size, LENGTH)), torch.randint(0, 2, (size, LENGTH))


def milliseconds(model, batch) -> float:
    start = time.perf_counter()
    model(*batch)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fp32", type=Path, help="folder with model_final.pt")
    parser.add_argument("--int8", type=Path, help="folder with model_int8.onnx")
    parser.add_argument("--threads", type=int, default=0, help="of both; default: all cores")
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    sys.path.insert(0, str(EXAMPLE))
    from models import BlendCNN

    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    if args.fp32:
        stored = torch.load(args.fp32 / "model_final.pt", weights_only=True)
        fp32 = BlendCNN(**stored["config"]["model"])
        fp32.load_state_dict(stored["state"])
    else:
        fp32 = BlendCNN()
    fp32.eval()
    if args.int8:
        int8 = kilter.torch.load(args.int8 / "model_int8.onnx", threads=args.threads)
    else:
        int8 = kilter.quantize(fp32, [random_batch(8) for _ in range(4)], threads=args.threads)
    print(f"{torch.get_num_threads()} threads, sequences of {LENGTH} tokens")
    with torch.no_grad():
        for size in (1, 8, 32):
            batch = random_batch(size)
            for model in (fp32, int8):
                for _ in range(3):
                    model(*batch)
            pairs = [(milliseconds(fp32, batch), milliseconds(int8, batch)) for _ in range(args.rounds)]
            theirs, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(a / b for a, b in pairs)
            print(
                f"batch {size:2}: PyTorch FP32 {theirs:7.2f} ms, kilter INT8 {ours:7.2f} ms, {ratio:.1f}x as fast"
            )


if __name__ == "__main__":
    main()
