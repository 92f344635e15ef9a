#!/usr/bin/env python3
"""Runs kilter's tuner and NNCF's quantize_with_accuracy_control side by side: same model, images and promise.

KILTER_DATA names a folder with imagenet_val1000, imagenet_calib100 and onnx/; nothing of it comes with kilter.
Each tool runs as a command of its own, from its start to the exported file, and with --rounds the two take turns.
Afterwards kilter's file is evaluated in kilter, ONNX Runtime and OpenVINO, NNCF's in OpenVINO, and both results
are timed at batch 1 in interleaved slices (bench/peers.py does that).

    python bench/tuning.py                                          # three networks, 1 %
    python bench/tuning.py mobilenetv2-7 --case "0.3%" --rounds 3
    python bench/tuning.py mobilenetv2-7 --case "1% per-tensor" --strategy basic --strategy mse --no-nncf
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import accuracy
import peers

DATA = accuracy.DATA
WORK = Path(__file__).resolve().parent.parent / "build" / "tuning"
CASES = {
    "1%": ("1%", "per-channel"),
    "1% per-tensor": ("1%", "per-tensor"),
    "0.3%": ("0.3%", "per-channel"),
}


@dataclass
class Row:
    model: str
    case: str
    tool: str
    seconds: float  # of the whole command, the median of the rounds
    met: bool
    top1: float  # by the tool's own engine, in percent
    onnxruntime: float | None = None  # the exported file there
    openvino: float | None = None
    trials: int | None = None
    evaluations: int | None = None  # in full
    spared: int | None = None  # operators in floating point
    milliseconds: float | None = None  # batch 1, the tool's own engine


def fresh(path):
    """A folder that is not there."""
    import shutil

    shutil.rmtree(path, ignore_errors=True)
    return path


def run_kilter(name, case, strategy, out):
    loss, weights = CASES[case]
    scale, mean, std = accuracy.IMAGE_MODELS[name]
    values = [str(DATA / "onnx" / f"{name}.onnx"), "-o", str(out), "--json"]
    values += [
        "--data",
        str(DATA / "imagenet_val1000"),
        "--labels",
        str(DATA / "imagenet_val1000/labels.txt"),
    ]
    values += ["--calibration-data", str(DATA / "imagenet_calib100"), "--resize", "256"]
    values += ["--scale", repr(scale), "--mean", ",".join(map(str, mean)), "--std", ",".join(map(str, std))]
    values += ["--max-loss", loss, "--weights", weights, "--strategy", strategy]
    values += ["--workspace", str(fresh(WORK / f"{name}-{case}-{strategy}".replace(" ", "-")))]
    command = [str(Path(sys.executable).with_name("kilter")), "tune", *values]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"tuning: kilter failed: {done.stderr}")
    return seconds, json.loads(done.stdout)


def run_nncf(name, case, out):
    command = [sys.executable, __file__, name, "--case", case, "--nncf-to", str(out)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"tuning: NNCF failed: {done.stderr[-2000:]}")
    return seconds


def nncf_command(name, case, out):
    """What a user of NNCF writes; runs in a process of its own."""
    import nncf
    import openvino
    from nncf.parameters import DropType
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, QuantizationParameters

    loss, weights = CASES[case]
    job = accuracy.ImageTask(name)
    model = openvino.Core().read_model(str(job.path))

    def validate(compiled, samples):
        right = [float(compiled(inputs)[0].argmax() == label) for inputs, label in samples]
        return float(np.mean(right)), right

    samples = [(job.batch(pixels), label) for pixels, label in zip(job.pixels, job.labels, strict=True)]
    advanced = AdvancedQuantizationParameters()
    if weights == "per-tensor":
        advanced.weights_quantization_params = QuantizationParameters(per_channel=False)
    calibration = job.calibration()
    result = nncf.quantize_with_accuracy_control(
        model,
        calibration_dataset=nncf.Dataset(calibration),
        validation_dataset=nncf.Dataset(samples, lambda sample: sample),
        validation_fn=lambda compiled, data: validate(compiled, data),
        max_drop=float(loss.rstrip("%")) / 100,
        drop_type=DropType.RELATIVE,
        subset_size=len(calibration),
        advanced_quantization_parameters=advanced,
    )
    openvino.save_model(result, str(out), compress_to_fp16=False)


def top1(job, runner):
    return accuracy.percent(job.predict(runner) == job.labels)


def time_both(name, entries, rounds):
    """Median milliseconds of each file in its engine, batch 1, in turns."""
    import multiprocessing

    job_input = accuracy.input_names(DATA / "onnx" / f"{name}.onnx")[0]
    specs = [peers.InputSpec(job_input, (1, 3, 224, 224), np.dtype(np.float32))]
    context = multiprocessing.get_context("spawn")
    result = peers.measure(context, entries, specs, peers_threads(), rounds, (0.5, 5))
    if result["errors"]:
        sys.exit(f"tuning: {result['errors']}")
    return {label: engine["rounds_ms"] for label, engine in result["engines"].items()}


def peers_threads():
    import os

    return len(os.sched_getaffinity(0))


def compare(name, case, arguments):
    job = accuracy.ImageTask(name)
    stem = f"{name}-{case}".replace(" ", "-")
    kilter_file, nncf_file = WORK / f"{stem}.onnx", WORK / f"{stem}.nncf.xml"
    kilter_seconds, nncf_seconds, report = [], [], None
    for _ in range(arguments.rounds):
        seconds, report = run_kilter(name, case, "auto", kilter_file)
        kilter_seconds.append(seconds)
        if arguments.nncf:
            nncf_seconds.append(run_nncf(name, case, nncf_file))
    rows = [
        Row(
            name,
            case,
            "kilter auto",
            statistics.median(kilter_seconds),
            report["met"],
            100 * report["best"]["outcome"]["accuracy"][0],
            top1(job, accuracy.onnxruntime_runner(kilter_file)),
            top1(job, accuracy.openvino_runner(kilter_file)),
            len(report["trials"]),
            report["full_evaluations"],
            len(report["spared"]),
        )
    ]
    limit = (1 - float(CASES[case][0].rstrip("%")) / 100) * 100 * report["baseline"]["accuracy"][0]
    print(f"{name}, {case}: the promise is {limit:.2f}", file=sys.stderr)
    if arguments.nncf:
        ratios = [nncf / kilter for nncf, kilter in zip(nncf_seconds, kilter_seconds, strict=True)]
        found = top1(job, accuracy.openvino_runner(nncf_file))
        rows.append(
            Row(name, case, "NNCF", statistics.median(nncf_seconds), found >= limit, found, None, found)
        )
        times = time_both(
            name,
            {"kilter": ("kilter", kilter_file), "NNCF in OpenVINO": ("openvino", nncf_file)},
            arguments.slices,
        )
        rows[0].milliseconds = statistics.median(times["kilter"])
        rows[1].milliseconds = statistics.median(times["NNCF in OpenVINO"])
        speed = statistics.median(
            theirs / ours for ours, theirs in zip(times["kilter"], times["NNCF in OpenVINO"], strict=True)
        )
        print(
            f"{name}, {case}: tuning {statistics.median(ratios):.1f}x as fast as NNCF "
            f"({min(ratios):.1f}..{max(ratios):.1f}), the result {speed:.2f}x as fast",
            flush=True,
        )
    for strategy in arguments.strategy or []:
        seconds, found = run_kilter(name, case, strategy, WORK / f"{stem}.{strategy}.onnx")
        best = found["best"]["outcome"]
        rows.append(
            Row(
                name,
                case,
                f"kilter {strategy}",
                seconds,
                found["met"],
                100 * best["accuracy"][0],
                trials=len(found["trials"]),
                evaluations=found["full_evaluations"],
                spared=len(found["spared"]),
                milliseconds=best["milliseconds"],
            )
        )
    return rows


def show(rows):
    print(
        "| model | promise | tool | seconds | kept | top-1 | in ORT | in OpenVINO | trials | full | spared | ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        cells = [
            row.model,
            row.case,
            row.tool,
            f"{row.seconds:.1f}",
            "yes" if row.met else "no",
            f"{row.top1:.1f}",
            *("-" if value is None else f"{value:.1f}" for value in (row.onnxruntime, row.openvino)),
            *("-" if value is None else str(value) for value in (row.trials, row.evaluations, row.spared)),
            "-" if row.milliseconds is None else f"{row.milliseconds:.2f}",
        ]
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(accuracy.IMAGE_MODELS))
    parser.add_argument("--case", action="append", choices=CASES, help="promise and weights (default: 1%%)")
    parser.add_argument(
        "--rounds", type=int, default=1, help="whole commands of each tool, in turns (default 1)"
    )
    parser.add_argument("--slices", type=int, default=7, help="interleaved slices that time the results")
    parser.add_argument("--strategy", action="append", help="also run this strategy of kilter's")
    parser.add_argument("--no-nncf", dest="nncf", action="store_false", help="kilter only")
    parser.add_argument("--json", type=Path, help="write the rows there, too")
    parser.add_argument("--nncf-to", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not (DATA / "imagenet_val1000").exists():
        sys.exit("tuning: set KILTER_DATA to the folder that has imagenet_val1000")
    WORK.mkdir(parents=True, exist_ok=True)
    cases = arguments.case or ["1%"]
    if arguments.nncf_to:
        nncf_command(arguments.models[0], cases[0], arguments.nncf_to)
        return
    rows = []
    for case in cases:
        for name in arguments.models or accuracy.IMAGE_MODELS:
            rows += compare(name, case, arguments)
    show(rows)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
