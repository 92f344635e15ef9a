"""The backend test suite of the onnx package, run through kilter: cases, how one is run, and what must agree."""

import collections
import fnmatch
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

import kilter

LIST = Path(__file__).with_name("onnx_backend_expected.txt")

# 'real' is left out: its models have to be downloaded.
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def all_cases():
    """Every case of the suite, by kind and name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cases on infinities and overflow are made by dividing by zero
        cases = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    return sorted(cases, key=_key)


def _key(case):
    return KINDS.index(case.kind), case.name


def run_case(case, *, values=True):
    """Runs one case; an exception tells how it failed. Without `values` only types and shapes are compared."""
    proto = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
    model = kilter.load(proto.SerializeToString(), threads=1)
    names = [port.name for port in proto.graph.input]
    data_sets = _stored_data(case, proto) if case.model_dir else case.data_sets
    assert data_sets
    for inputs, expected in data_sets:
        given = dict(zip(names, map(_array, inputs), strict=False))
        outputs = model.run({port.name: given[port.name] for port in model.inputs})
        for found, wanted in zip(outputs.values(), expected, strict=True):
            wanted = _array(wanted)
            if values:
                expect_close(found, wanted, case.rtol, case.atol)
            else:
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)


def expect_close(found, wanted, rtol, atol):
    """Arrays, or lists of them, agree in type, shape and content."""
    if wanted is None or isinstance(wanted, list | tuple):
        assert type(found) is type(wanted), f"found {type(found)}, expected {type(wanted)}"
        for one, other in zip(found or [], wanted or [], strict=True):
            expect_close(one, _array(other), rtol, atol)
        return
    assert found.shape == wanted.shape, f"shape {found.shape}, expected {wanted.shape}"
    if wanted.dtype == object or wanted.dtype.kind in "US":
        np.testing.assert_array_equal(found.astype(str), wanted.astype(str))
        return
    assert found.dtype == wanted.dtype, f"elements are {found.dtype}, expected {wanted.dtype}"
    if wanted.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)  # as the suite's own runner does: two units in the last place
    if wanted.dtype.kind == "V":  # the types of ml_dtypes
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def _array(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _stored_data(case, model):
    sets = []
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        inputs = [
            _read(folder / f"input_{i}.pb", port.type)
            for i, port in enumerate(model.graph.input)
            if (folder / f"input_{i}.pb").exists()
        ]
        outputs = [_read(folder / f"output_{i}.pb", port.type) for i, port in enumerate(model.graph.output)]
        sets.append((inputs, outputs))
    return sets


def _read(path, declared):
    if declared.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(path.read_bytes()))
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def read_list():
    """(name or glob, reason) of every entry of onnx_backend_expected.txt."""
    lines = (line.split("#")[0].split(maxsplit=1) for line in LIST.read_text(encoding="utf-8").splitlines())
    return [(pattern, reason.strip()) for pattern, reason in filter(None, lines)]


def reason_of(name, entries):
    """Why a case does not pass; None when it must."""
    return next((reason for pattern, reason in entries if fnmatch.fnmatchcase(name, pattern)), None)


def _operator(case):
    """The operator that a node case is about; None for those that spell an operator out."""
    if case.kind != "node" or "_expanded" in case.name:
        return None
    node = case.model.graph.node[-1]
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def document(cases):
    """The part of docs/operators.md that follows from the suite and the list."""
    entries = read_list()
    total = collections.Counter(case.kind for case in cases)
    passed = collections.Counter(case.kind for case in cases if reason_of(case.name, entries) is None)
    lines = ["| cases | pass |", "|---|---|"]
    lines += [f"| {kind} | {passed[kind]} of {total[kind]} |" for kind in KINDS]
    operators, missed = collections.Counter(), collections.defaultdict(dict)
    for case in cases:
        operator, reason = _operator(case), reason_of(case.name, entries)
        if operator is not None:
            operators[operator] += 1
            if reason is not None:
                missed[operator].setdefault(reason, []).append(case.name)
    complete = sorted(set(operators) - set(missed))
    text = ", ".join(complete)
    lines += ["", f"All cases pass ({len(complete)} operators):", "", textwrap.fill(text, 118), ""]
    lines += ["Some or all cases do not:", "", "| operator | pass | why not |", "|---|---|---|"]
    for operator in sorted(missed):
        failing = sum(len(names) for names in missed[operator].values())
        count = f"{operators[operator] - failing} of {operators[operator]}"
        lines.append(f"| {operator} | {count} | {'; '.join(missed[operator])} |")
    return "\n".join(lines) + "\n"


def main():
    """Runs all cases and prints how many of each kind pass; --document prints the table for the docs instead."""
    cases = all_cases()
    if "--document" in sys.argv:
        print(document(cases), end="")
        return
    passed = collections.Counter()
    for case in cases:
        try:
            run_case(case)
            passed[case.kind] += 1
        except (AssertionError, ValueError, TypeError) as error:
            print(f"{case.name}: {' '.join(str(error).split())[:140]}")
    for kind in KINDS:
        print(f"{kind}: {passed[kind]} of {sum(case.kind == kind for case in cases)} pass")


if __name__ == "__main__":
    main()
