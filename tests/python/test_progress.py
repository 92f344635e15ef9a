"""What long work shows: a bar in terminals and notebooks, nothing elsewhere; results as tables."""

import os
import pty
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import kilter
from conftest import FIXTURE
from kilter import progress
from study import SIZE, Study, batches

SCRIPT = """
import sys
import kilter, numpy as np
images = np.load(sys.argv[1] + "/images.npy").astype(np.float32)
labels = np.load(sys.argv[1] + "/labels.npy")
data = [(images[i : i + 20], labels[i : i + 20]) for i in range(0, 160, 20)]
kilter.tune(sys.argv[1] + "/model.onnx", metric="topk", data=data, objective="modelsize", threads=1, max_trials=3)
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("progress"))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_bar_says_what_how_far_and_how_long():
    clock = Clock()
    bar = progress.Bar(lambda bar: None, clock)
    bar.working("calibrating", 0, 100)
    clock.now = 5.0
    bar.working("calibrating", 25, 100)
    assert bar.share == 0.25 and bar.seconds_left == 15.0
    assert bar.line(100) == "calibrating [######..................] 25/100 | 15 s left | 5 s so far"
    assert len(bar.line(40)) == 39 and bar.line(40).startswith("calibra")
    bar.working("trial 1: all on integers", 0, 0)
    assert bar.share is None and bar.seconds_left is None
    assert bar.line(100) == "trial 1: all on integers 5 s so far"


def test_a_terminal_shows_a_bar_and_a_pipe_nothing(study):
    command = [sys.executable, "-c", SCRIPT, str(study.folder)]
    environment = os.environ | {"GOMP_SPINCOUNT": "0", "COLUMNS": "100"}
    piped = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, "", "")
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stderr=theirs, stdout=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    text = shown.decode()
    assert process.returncode == 0, text
    assert "trial 1: " in text and "reading calibration samples" in text
    assert text.endswith("\r\x1b[K"), "the bar is taken away at the end"
    assert "\n" not in text


def test_a_notebook_shows_a_bar(monkeypatch, study):
    updates = []
    handle = SimpleNamespace(update=lambda content, raw: updates.append(content))
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    display = SimpleNamespace(display=lambda content, raw, display_id: updates.append(content) or handle)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    kilter.tune(study.folder / "model.onnx", metric="topk", data=batches(study), max_trials=1, **SIZE)
    assert any("<progress" in content["text/html"] for content in updates)
    assert updates[-1] == {"text/plain": "", "text/html": ""}
    updates.clear()
    kilter.tune(
        study.folder / "model.onnx", metric="topk", data=batches(study), max_trials=1, progress=False, **SIZE
    )
    assert not updates


def test_a_bar_is_taken_away_when_something_goes_wrong(monkeypatch, study):
    drawn = []
    monkeypatch.setattr(kilter.tuning, "shown", lambda: progress.Bar(lambda bar: drawn.append(bar.what)))

    def broken(model):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        kilter.tune(study.folder / "model.onnx", [study.images[:8]], evaluate=broken, **SIZE)
    assert drawn[-1] == "" and len(drawn) > 1


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.rows = [], []

    def handle_starttag(self, tag, attrs):
        if tag != "br":
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def test_results_are_tables_in_notebooks_too():
    images = np.load(FIXTURE / "images.npy")[:64].astype(np.float32) / 255
    labels = np.load(FIXTURE / "labels.npy")[:64]
    found = kilter.tune(FIXTURE / "model.onnx", metric="topk", data=[(images, labels)], max_trials=2, **SIZE)
    parser = Cells()
    parser.feed(found._repr_html_())
    assert parser.open == []
    rows = {row[0]: row[1:] for row in parser.rows if row}
    assert rows["accuracy"][0] == f"{found.baseline.accuracy[0]:.4f}"
    assert rows["accuracy"][1] == f"{found.best.accuracy[0]:.4f}"
    assert re.fullmatch(r"[\d.]+ k?B", rows["size"][1])
    assert {entry.name for entry in found.spared} <= set(rows) or len(found.spared) > 20
    assert ("not</b> kept" in found._repr_html_()) != found.met


def test_names_in_tables_are_text_not_html():
    entry = kilter.tuning.Spared("<b>conv</b>", "Conv", "f32", "a & b")
    outcome = kilter.search.Outcome((0.5,), 1, False, 1.0, 10, 10, 0.1)
    trial = SimpleNamespace(**vars(outcome), number=1, operators="int8 1")
    result = SimpleNamespace(
        baseline=outcome, best=trial, met=True, spared=[entry], trials=[trial], seconds=1.0, ended="<end>"
    )
    text = kilter.report.result_html(result)
    assert "&lt;b&gt;conv&lt;/b&gt;" in text and "a &amp; b" in text and "&lt;end&gt;" in text
