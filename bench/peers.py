#!/usr/bin/env python3
"""Measures kilter, ONNX Runtime and OpenVINO on the same ONNX files, in one run.

A shared machine drifts by tens of percent within minutes, so engines are never timed one after the other.
Every round gives each engine one short slice, and a ratio is only ever formed between slices of the same
round; the table shows the median over the rounds and their range. Each engine lives in its own process and is
blocked on a pipe while another one runs, so no engine's spinning threads disturb another.

    python bench/peers.py                                  # the three generated models, batch 1 and 16
    python bench/peers.py resnet50 --batch 1 --quick
    python bench/peers.py model.onnx --shape image=1x3x320x320 --json result.json
    python bench/peers.py --int8                           # all in INT8, quantized by kilter and by the peers

With --int8 every model is quantized with made-up samples: by kilter, by ONNX Runtime's quantize_static and by
NNCF. ONNX Runtime and OpenVINO run kilter's file and their own; kilter runs its file, and the FP32 model beside.
"""

import argparse
import importlib
import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import models
import quantized

DEFAULT_MODELS = ["resnet50", "mobilenetv2", "bert-base"]

# After its last call an engine's threads spin for a while: ONNX Runtime's for 45 ms (measured), libomp's for
# 200 ms (KMP_BLOCKTIME). A slice starts only after the previous engine is asleep for certain.
SETTLE_SECONDS = 0.25

# A round counts as quiet when other processes (or, as steal, other virtual machines) used less than this many
# cores during each of its slices. 0.15 is just above the 10 ms ticks of /proc/stat.
QUIET_CORES = 0.15


# Inputs


@dataclass
class InputSpec:
    """One model input with all dimensions known. Integers are drawn from [low, high)."""

    name: str
    shape: tuple
    dtype: np.dtype
    low: int = 0
    high: int = 0

    def array(self, seed=0):
        """The same values in every process, aligned so that engines can use the buffer in place."""
        random = np.random.default_rng(zlib.crc32(self.name.encode()) + seed)
        if np.issubdtype(self.dtype, np.floating):
            values = random.standard_normal(self.shape, dtype=np.float32)
        else:
            values = random.integers(self.low, self.high, self.shape)
        return aligned(values.astype(self.dtype))


def aligned(array, alignment=64):
    buffer = np.empty(array.nbytes + alignment, np.uint8)
    start = -buffer.ctypes.data % alignment
    result = buffer[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def input_specs(model, batch, sequence, shapes):
    """Inputs of an onnx.ModelProto for this batch. Raises ValueError when a dimension stays unknown."""
    from onnx import helper

    initializers = {tensor.name: tensor for tensor in model.graph.initializer}
    specs = []
    for value in model.graph.input:
        if value.name in initializers:
            continue
        tensor_type = value.type.tensor_type
        dimensions = list(tensor_type.shape.dim)
        given = shapes.get(value.name)
        if given and len(given) != len(dimensions):
            raise ValueError(
                f"--shape {value.name} has {len(given)} dimensions, but the input has {len(dimensions)}"
            )
        shape = []
        for axis, dimension in enumerate(dimensions):
            if dimension.HasField("dim_value") and dimension.dim_value > 0:
                if axis == 0 and dimension.dim_value != batch:
                    raise ValueError(f"input '{value.name}' is fixed to batch {dimension.dim_value}")
                shape.append(dimension.dim_value)
            elif axis == 0:
                shape.append(batch)
            elif given:
                shape.append(given[axis])
            elif "seq" in dimension.dim_param:
                shape.append(sequence)
            else:
                raise ValueError(
                    f"input '{value.name}' has unknown dimension {axis}"
                    f" ('{dimension.dim_param}'); give --shape {value.name}=1x..."
                )

        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor_type.elem_type))
        spec = InputSpec(value.name, tuple(shape), dtype)
        if "mask" in value.name:
            spec.low, spec.high = 1, 2
        elif "type" in value.name:
            spec.high = 1
        else:
            # Ids must stay inside the table they index; without a visible table only small ids are safe.
            tables = [
                node.input[0]
                for node in model.graph.node
                if node.op_type == "Gather" and node.input[1] == value.name
            ]
            rows = [initializers[table].dims[0] for table in tables if table in initializers]
            spec.high = min(rows, default=100)
        specs.append(spec)
    return specs


# Engines. Each loader returns the ways to call one loaded model, as {label: function returning outputs by
# name}; the worker times them during the warm-up and keeps the fastest.


def load_kilter(path, inputs, threads):
    import kilter

    model = kilter.load(str(path), threads=threads)
    return {"run": lambda: model.run(inputs)}


def load_onnxruntime(path, inputs, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    # Without spinning MobileNetV2 at batch 1 takes 20% longer; large models do not notice.
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    symbols = {
        symbol: size
        for value in session.get_inputs()
        for symbol, size in zip(value.shape, inputs[value.name].shape)
        if isinstance(symbol, str)
    }
    # Fixed dimensions let it fold the shape arithmetic of exported models, as OpenVINO does when reshaped.
    for symbol, size in symbols.items():
        options.add_free_dimension_override_by_name(symbol, size)
    if symbols:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    names = [value.name for value in session.get_outputs()]
    outputs = {name: aligned(array) for name, array in zip(names, session.run(None, inputs))}
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    for name, array in outputs.items():
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def run_bound():
        session.run_with_iobinding(binding)
        return outputs

    return {"run": lambda: dict(zip(names, session.run(None, inputs))), "io binding": run_bound}


def load_openvino(path, inputs, threads):
    import openvino

    core = openvino.Core()
    model = core.read_model(str(path))
    model.reshape({name: list(array.shape) for name, array in inputs.items()})
    compiled = core.compile_model(
        model,
        "CPU",
        {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            # On CPUs with avx512_bf16 or AMX, OpenVINO by default computes float32 models in bfloat16, without a
            # word and about twice as fast. All engines here run the model as written.
            "INFERENCE_PRECISION_HINT": "f32",
        },
    )
    request = compiled.create_infer_request()
    for name, array in inputs.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run_bound():
        results = request.infer(share_outputs=True)
        return {port.any_name: results[port] for port in compiled.outputs}

    return {"bound": run_bound}


ENGINES = {"kilter": load_kilter, "onnxruntime": load_onnxruntime, "openvino": load_openvino}


# The worker process: one engine with one model. Between slices it is blocked in recv().


def iteration_times(run, seconds, iterations):
    """Runs for at least `seconds` and at least `iterations` times."""
    times = []
    begin = time.perf_counter()
    while len(times) < iterations or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


# What is measured: label → (engine, file). In FP32 every engine runs the same file.

CALIBRATION_SAMPLES = 16
INT8_SUBJECT = "kilter"
INT8_BASELINE = "kilter f32"


def fp32_entries(path, engines):
    return {engine: (engine, path) for engine in engines}


def int8_entries(path, model, engines, sequence, shapes):
    """Quantizes the model in every way. What fails is reported and left out."""
    specs = input_specs(model, 1, sequence, shapes)
    samples = [{spec.name: spec.array(seed) for spec in specs} for seed in range(1, CALIBRATION_SAMPLES + 1)]
    name = path.stem
    transformer = any(node.op_type == "Erf" for node in model.graph.node)
    entries = {}

    def add(label, engine, make):
        if engine not in engines:
            return
        print(f"peers: {name}: {label}", file=sys.stderr)
        try:
            entries[label] = (engine, make())
        except Exception as error:  # a peer's quantizer may fail in any way
            print(f"peers: {name}: {label} is left out: {type(error).__name__}: {error}", file=sys.stderr)

    add(INT8_SUBJECT, "kilter", lambda: quantized.kilter_file(path, samples, name))
    add(INT8_BASELINE, "kilter", lambda: path)
    add(
        "onnxruntime, kilter's file",
        "onnxruntime",
        lambda: quantized.kilter_file(path, samples, f"{name}-for-ort", target="onnxruntime"),
    )
    add("onnxruntime, own file", "onnxruntime", lambda: quantized.onnxruntime_file(path, samples, name))
    if INT8_SUBJECT in entries:
        add("openvino, kilter's file", "openvino", lambda: entries[INT8_SUBJECT][1])
    add("openvino, NNCF's file", "openvino", lambda: quantized.nncf_file(path, samples, name, transformer))
    return entries


def serve(connection, engine, path, specs, threads, warm_up):
    try:
        inputs = {spec.name: spec.array() for spec in specs}
        ways = ENGINES[engine](path, inputs, threads)
        outputs = {name: np.array(array) for name, array in next(iter(ways.values()))().items()}
        medians = {label: statistics.median(iteration_times(run, *warm_up)) for label, run in ways.items()}
        label = min(medians, key=medians.get)
        connection.send({"outputs": outputs, "mode": label})

        while True:
            time.sleep(0.8 * SETTLE_SECONDS)
            slept_at, cpu_at = time.perf_counter(), time.process_time()
            slice_ = connection.recv()
            if slice_ is None:
                return
            idle_cpu = (time.process_time() - cpu_at) / (time.perf_counter() - slept_at)
            cpu_at = time.process_time()
            times = iteration_times(ways[label], *slice_)
            cpu = time.process_time() - cpu_at
            connection.send({"times": times, "cpu": cpu, "idle_cpu": idle_cpu})
    except Exception as error:  # whatever an engine throws belongs in the report, not in a stack trace
        connection.send({"error": f"{type(error).__name__}: {error}"})


class Worker:
    """The parent's end of one worker process."""

    def __init__(self, context, engine, path, specs, threads, warm_up):
        self.engine = engine
        self.connection, remote = context.Pipe()
        self.process = context.Process(
            target=serve, daemon=True, args=(remote, engine, path, specs, threads, warm_up)
        )
        self.process.start()
        remote.close()

    def receive(self):
        """The worker's next message. A worker that crashed answers with an error, too."""
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return {"error": f"the process died with exit code {self.process.exitcode}"}

    def time_slice(self, seconds, iterations):
        """The worker's answer, with the cores that anything else on the machine used meanwhile."""
        time.sleep(SETTLE_SECONDS)
        start, busy = time.perf_counter(), busy_seconds()
        try:
            self.connection.send((seconds, iterations))
        except BrokenPipeError:
            pass
        answer = self.receive()
        others = busy_seconds() - busy - answer.get("cpu", 0.0)
        answer["other_cores"] = max(0.0, others / (time.perf_counter() - start))
        return answer

    def stop(self):
        try:
            self.connection.send(None)
        except BrokenPipeError:
            pass
        self.process.join(timeout=10)
        if self.process.is_alive():
            self.process.kill()


# Measuring


def busy_seconds():
    """CPU time that all processes of this machine have used, with the time the hypervisor took away."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def relative_error(outputs, reference):
    """max |a - b| / max |b|, the worst over the outputs; infinite when names or shapes differ."""
    if outputs.keys() != reference.keys():
        return float("inf")
    worst = 0.0
    for name, expected in reference.items():
        if outputs[name].shape != expected.shape or not np.isfinite(outputs[name]).all():
            return float("inf")
        difference = np.abs(outputs[name].astype(np.float64) - expected).max()
        worst = max(worst, float(difference / max(np.abs(expected).max(), 1e-30)))
    return worst


def measure(context, entries, specs, threads, rounds, slice_):
    """Times one model at one batch size: `entries` maps labels to (engine, file). Engines that fail are reported under 'errors' and left out.

    When something else runs on the machine, up to twice the rounds are made and the quietest are kept; the
    choice looks at the load of others only, never at the times.
    """
    workers, ready, errors = [], {}, {}
    try:
        # One at a time, so that the warm-up, which chooses how to call an engine, is undisturbed.
        for label, (engine, path) in entries.items():
            worker = Worker(context, engine, path, specs, threads, slice_)
            workers.append(worker)
            answer = worker.receive()
            if "error" in answer:
                errors[label] = answer["error"]
            else:
                ready[label] = (worker, answer)

        made = []
        while len(made) < 2 * rounds and sum(other < QUIET_CORES for other, _ in made) < rounds:
            order = [engine for engine in ready if engine not in errors]
            shift = len(made) % max(len(order), 1)
            answers = {}
            for engine in order[shift:] + order[:shift]:
                answers[engine] = ready[engine][0].time_slice(*slice_)
                if "error" in answers[engine]:
                    errors[engine] = answers[engine]["error"]
            made.append((max((answer["other_cores"] for answer in answers.values()), default=0.0), answers))
    finally:
        for worker in workers:
            worker.stop()

    kept = sorted(made, key=lambda round_: round_[0])[:rounds]
    measured = [engine for engine in ready if engine not in errors]
    samples = {
        engine: [1e3 * statistics.median(answers[engine]["times"]) for _, answers in kept]
        for engine in measured
    }
    reference = next(
        (label for label in ("onnxruntime", INT8_BASELINE) if label in measured), next(iter(measured), None)
    )
    return {
        "engines": {
            engine: {
                "median_ms": statistics.median(samples[engine]),
                "rounds_ms": samples[engine],
                "mode": ready[engine][1]["mode"],
                "idle_cpu": max(answers[engine]["idle_cpu"] for _, answers in kept),
            }
            for engine in measured
        },
        "relative_error": {
            engine: relative_error(ready[engine][1]["outputs"], ready[reference][1]["outputs"])
            for engine in measured
            if engine != reference
        },
        "reference": reference,
        "rounds_made": len(made),
        "other_cores": [other for other, _ in kept],
        "errors": errors,
    }


def add_ratios(result, subject):
    """Speed of `subject` over each other engine (above 1: subject is faster), per round."""
    engines = result["engines"]
    result["ratios"] = {}
    if subject not in engines:
        return
    for peer in engines:
        if peer == subject:
            continue
        pairs = zip(engines[peer]["rounds_ms"], engines[subject]["rounds_ms"])
        ratios = [theirs / ours for theirs, ours in pairs]
        result["ratios"][peer] = {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
    peers = [peer for peer in result["ratios"] if peer != INT8_BASELINE]
    if peers:
        # By ratio, not by milliseconds: with few rounds the two disagree, and then the less favourable one counts.
        result["faster_peer"] = min(peers, key=lambda peer: result["ratios"][peer]["median"])


# Reporting


def machine_facts(versions, threads, precision):
    cpu = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            cpu.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    flags = cpu.get("flags", "").split()
    interesting = ["avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16"]
    return {
        "cpu": cpu.get("model name", platform.processor()),
        "isa": [flag for flag in interesting if flag in flags],
        "isa_missing": [flag for flag in interesting if flag not in flags],
        "cores": len(os.sched_getaffinity(0)),
        "threads": threads,
        "load_average": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "precision": precision,
    }


def facts_text(facts):
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return "\n".join(
        [
            f"- cpu: {facts['cpu']}, {facts['cores']} cores, {facts['threads']} threads used,"
            f" load average {facts['load_average']:.2f} at start",
            f"- isa: {' '.join(facts['isa'])} (not: {' '.join(facts['isa_missing'])})",
            f"- system: {facts['system']}, Python {facts['python']}",
            f"- engines: {versions}, {facts['precision']}",
        ]
    )


def ratio_text(ratio):
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}..{ratio['max']:.2f})" if ratio else "-"


def table(results, engines, subject):
    """Milliseconds per engine, then the speed of `subject` over its peers with the range over the rounds."""
    peers = [engine for engine in engines if engine != subject]
    header = ["model", "batch", *[f"{engine} ms" for engine in engines]]
    header += [f"{subject} / {peer}" for peer in peers]
    if len(peers) > 1:
        header.append(f"{subject} / fastest peer")
    header.append("max rel. error")
    rows = [header, ["---"] * 2 + ["---:"] * (len(header) - 2)]
    for result in results:
        row = [result["model"], str(result["batch"])]
        for engine in engines:
            timed = result["engines"].get(engine)
            row.append(f"{timed['median_ms']:.2f}" if timed else "failed")
        row += [ratio_text(result["ratios"].get(peer)) for peer in peers]
        if len(peers) > 1:
            row.append(ratio_text(result["ratios"].get(result.get("faster_peer"))))
        row.append(f"{max(result['relative_error'].values()):.1e}" if result["relative_error"] else "-")
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def remarks(results, tolerance):
    """What a reader must know before trusting a row."""
    lines = []
    for result in results:
        label = f"{result['model']}, batch {result['batch']}"
        lines += [f"- {label}: {engine} failed: {error}" for engine, error in result["errors"].items()]
        others = max(result["other_cores"], default=0.0)
        if others >= QUIET_CORES:
            lines.append(
                f"- {label}: not quiet: other processes used up to {others:.2f} cores in the"
                f" {len(result['other_cores'])} quietest of {result['rounds_made']} rounds"
            )
        lines += [
            f"- {label}: {engine} differs from {result['reference']} by {error:.1e}"
            for engine, error in result["relative_error"].items()
            if error > tolerance
        ]
        lines += [
            f"- {label}: {engine} used {timed['idle_cpu']:.2f} cores during the slices of others"
            for engine, timed in result["engines"].items()
            if timed["idle_cpu"] > 0.1
        ]
    return "\n".join(lines)


def importable(engines):
    """Versions of the engines whose module loads. The others are named on stderr, with the reason."""
    versions = {}
    for engine in engines:
        try:
            module = importlib.import_module(engine)
        except ImportError as error:
            print(
                f"peers: {engine} is left out: its Python module cannot be imported ({error})",
                file=sys.stderr,
            )
            continue
        versions[engine] = getattr(module, "__version__", "unknown")
    return versions


# Command line


def model_path(name):
    if name in models.MODELS:
        return models.cached(name)
    path = Path(name)
    if not path.exists():
        sys.exit(f"peers: '{name}' is neither a file nor a generated model ({', '.join(models.MODELS)})")
    return path


def parse_shape(text):
    name, _, dimensions = text.rpartition("=")
    try:
        return name, [int(dimension) for dimension in dimensions.split("x")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected NAME=1x3x224x224, got '{text}'") from None


def parse_engines(text):
    engines = text.split(",")
    if unknown := [engine for engine in engines if engine not in ENGINES]:
        expected = ",".join(ENGINES)
        raise argparse.ArgumentTypeError(f"unknown engine '{unknown[0]}', expected some of {expected}")
    return engines


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help=f"ONNX files or generated models (default: {' '.join(DEFAULT_MODELS)})",
    )
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16], metavar="N", help="default: 1 16")
    parser.add_argument(
        "--threads",
        type=int,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="threads of every engine (default: the cores this process may use)",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="default: 7, with --quick 3")
    parser.add_argument(
        "--engines",
        type=parse_engines,
        default=list(ENGINES),
        metavar="A,B",
        help=f"default: {','.join(ENGINES)}",
    )
    parser.add_argument(
        "--sequence",
        type=int,
        default=128,
        metavar="N",
        help="length of open dimensions named like 'sequence' (default: 128)",
    )
    parser.add_argument(
        "--shape",
        type=parse_shape,
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help="shape of an input with open dimensions; the first one is replaced by --batch",
    )
    parser.add_argument("--int8", action="store_true", help="quantize the models and measure them in INT8")
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter slices: a first look, not a result"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the report here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all samples here")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    slice_ = (0.1, 2) if arguments.quick else (0.3, 3)
    rounds = arguments.rounds or (3 if arguments.quick else 7)
    versions = importable(arguments.engines)
    engines = list(versions)
    if not engines:
        sys.exit("peers: no engine left to measure")
    # Without kilter the table still compares the peers, relative to the first of them.
    subject = "kilter" if "kilter" in engines else engines[0]
    precision = "all in INT8 but 'kilter f32'" if arguments.int8 else "all in float32"
    facts = machine_facts(versions, arguments.threads, precision)
    labels = engines

    import onnx

    # Engines start threads on import; a fork of this process would inherit their locks.
    context = multiprocessing.get_context("spawn")
    results = []
    for name in arguments.models or DEFAULT_MODELS:
        path = model_path(name)
        model = onnx.load(path, load_external_data=False)
        entries = fp32_entries(path, engines)
        if arguments.int8:
            entries = int8_entries(path, model, engines, arguments.sequence, dict(arguments.shape))
            labels = (
                list(entries) if labels is engines else labels + [new for new in entries if new not in labels]
            )
        for batch in arguments.batch:
            try:
                specs = input_specs(model, batch, arguments.sequence, dict(arguments.shape))
            except ValueError as error:
                print(f"peers: {path}: batch {batch} is left out: {error}", file=sys.stderr)
                continue
            print(f"peers: {path.stem}, batch {batch}", file=sys.stderr)
            result = {
                "model": path.stem,
                "batch": batch,
                **measure(context, entries, specs, arguments.threads, rounds, slice_),
            }
            add_ratios(result, subject)
            results.append(result)

    legend = (
        f"Milliseconds per call. Ratios are speeds, above 1 {subject} is faster: median of {rounds}"
        " interleaved rounds (range over the rounds). Errors are max |a-b| / max |b| between engines."
    )
    # Rounding to 8 bits moves the outputs of random networks; a wrong result is of another size.
    tolerance = 0.5 if arguments.int8 else 1e-3
    sections = [facts_text(facts), table(results, labels, subject), legend, remarks(results, tolerance)]
    report = "\n\n".join(filter(None, sections))
    print(report)
    if arguments.markdown:
        arguments.markdown.write_text(report + "\n")
    if arguments.json:
        record = {
            "machine": facts,
            "rounds": rounds,
            "slice_seconds": slice_[0],
            "subject": subject,
            "results": results,
        }
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
