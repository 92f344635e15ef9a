#!/usr/bin/env python3
"""What a kilter.torch.Module adds to a run of the engine, and how two Python threads scale.

    make test-frameworks FRAMEWORKS=torch && build/venvs/torch/bin/python bench/torch_overhead.py

Calls of the module and of the engine (on arrays that are there already) alternate; medians of many. One thread in the engine.
"""

import argparse
import statistics
import threading
import time

import torch
from torch import nn

import kilter


def network(width: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10)).eval()


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def overhead(module, x, rounds: int) -> tuple[float, float]:
    """Median microseconds of the engine alone, and of the module."""
    session = module.model._session
    inputs = [(x.numpy(), "f32")]
    engine, wrapped = [], []
    for _ in range(rounds):
        engine.append(seconds(lambda: session.run(inputs)))
        wrapped.append(seconds(lambda: module(x)))
    return statistics.median(engine) * 1e6, statistics.median(wrapped) * 1e6


def scaling(module, x, calls: int) -> float:
    """How many times as many calls two Python threads make as one does."""

    def work():
        for _ in range(calls):
            module(x)

    def together(count: int) -> float:
        threads = [threading.Thread(target=work) for _ in range(count)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return count * calls / (time.perf_counter() - start)

    rates = [(together(1), together(2)) for _ in range(7)]
    return statistics.median(two / one for one, two in rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3000)
    args = parser.parse_args()
    with torch.no_grad():
        x = torch.randn(1, 64)
        small = kilter.quantize(network(64), [x], threads=1)
        overhead(small, x, args.rounds // 10)
        engine, wrapped = overhead(small, x, args.rounds)
        print(f"engine {engine:.1f} us, module {wrapped:.1f} us: the module adds {wrapped - engine:.1f} us")
        large = kilter.quantize(network(4096), [torch.randn(256, 64)], threads=1)
        print(f"two Python threads make {scaling(large, torch.randn(256, 64), 20):.2f}x the calls of one")


if __name__ == "__main__":
    main()
