"""The whole backend test suite of the onnx package. onnx_backend_expected.txt lists what does not pass, and why.

All cases run in this process: one that crashed it would be seen by everybody.
"""

import collections
import fnmatch

import pytest
from onnx_cases import LIST, all_cases, document, read_list, reason_of, run_case

from conftest import ROOT

CASES = all_cases()
EXPECTED = read_list()
DOCUMENT = ROOT / "docs" / "operators.md"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case):
    reason = reason_of(case.name, EXPECTED)
    if reason is None or reason.startswith("random"):
        run_case(case, values=reason is None)
        return
    try:
        run_case(case)
    except (AssertionError, ValueError, TypeError):
        return
    pytest.fail(f"{case.name} passes: remove it from {LIST.name}")


def test_every_entry_of_the_list_is_a_case():
    for pattern, _ in EXPECTED:
        assert fnmatch.filter([case.name for case in CASES], pattern), f"{pattern} matches no case"


def test_no_case_is_missing_and_few_are_listed():
    found = collections.Counter(case.kind for case in CASES)
    passing = collections.Counter(case.kind for case in CASES if reason_of(case.name, EXPECTED) is None)
    assert found["node"] >= 1800 and passing["node"] >= found["node"] - 40
    for kind, count in (("simple", 23), ("pytorch-converted", 82), ("pytorch-operator", 35)):
        assert found[kind] >= count and passing[kind] == found[kind]


def test_the_document_says_what_the_list_says():
    assert document(CASES) in DOCUMENT.read_text(encoding="utf-8"), (
        f"{DOCUMENT.name} is out of date: put in what `python tests/python/onnx_cases.py --document` prints"
    )
