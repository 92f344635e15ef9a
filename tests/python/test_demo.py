"""make demo: the network that ships with kilter needs tuning, and tuning keeps the promise."""

import re
import subprocess
import sys

import pytest

from conftest import FIXTURE, ROOT


@pytest.fixture(scope="module")
def demo():
    """What the demo prints, and its last table: accuracy of each model by name."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "demo.py"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = done.stdout.rpartition("speed-up")[2]
    rows = re.findall(r"^(\w.*?) +(\d+\.\d+)% .*x +\d+ kB$", table, re.MULTILINE)
    return done.stdout, {name: float(accuracy) for name, accuracy in rows}


def test_naive_int8_hurts_and_tuning_keeps_the_promise(demo):
    _, accuracy = demo
    assert accuracy["FP32"] >= 91
    assert accuracy["naive INT8"] < 0.98 * accuracy["FP32"]
    for name in ("tuned INT8, per tensor", "tuned INT8"):
        assert accuracy[name] >= 0.99 * accuracy["FP32"]


def test_the_demo_shows_what_the_search_did(demo):
    text, _ = demo
    assert text.count("The promise is kept") == 2
    assert "all on integers" in text
    one_scale = text.split("\n3. ")[1].split("\n4. ")[0]
    first = re.search("^tune 1 .*$", one_scale, re.MULTILINE).group()
    assert "keeps the promise" not in first  # all on integers is not enough with one scale for each tensor
    assert re.search(r"^Best: int8 \d+.*(equalization|f32 \d+)", one_scale, re.MULTILINE)


def test_the_fixture_is_small():
    assert sum(path.stat().st_size for path in FIXTURE.iterdir() if path.is_file()) < 3e6
