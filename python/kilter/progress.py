"""Progress: what long work is doing, how far it is and how long it still takes, on one line of a terminal or a notebook.

Elsewhere nothing is shown: logs and pipes get no half lines.
"""

import html
import importlib
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from .search import Outcome, Trial

_CELLS = 24


class Listener:
    """What tuning tells about itself; does nothing with it."""

    def working(self, what: str, done: int, of: int) -> None:
        """What is being done, how much of it is done, of how much (0: not known)."""

    def baseline(self, outcome: Outcome, text: str) -> None:
        """FP32 was evaluated; `text` is the line that says so."""

    def trial(self, trial: Trial, text: str) -> None:
        """A trial is finished."""

    def close(self) -> None:
        """The work has ended, well or not."""


class Lines(Listener):
    """A line for FP32 and for every trial."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def baseline(self, outcome: Outcome, text: str) -> None:
        print(text, end="", file=self._stream, flush=True)

    def trial(self, trial: Trial, text: str) -> None:
        print(text, end="", file=self._stream, flush=True)


class Calls(Listener):
    """A function of the user's, called with every trial."""

    def __init__(self, function: Callable[[Trial], None]):
        self._function = function

    def trial(self, trial: Trial, text: str) -> None:
        self._function(trial)


class All(Listener):
    """Several listeners."""

    def __init__(self, *listeners: Listener):
        self._listeners = listeners

    def working(self, what: str, done: int, of: int) -> None:
        for listener in self._listeners:
            listener.working(what, done, of)

    def baseline(self, outcome: Outcome, text: str) -> None:
        for listener in self._listeners:
            listener.baseline(outcome, text)

    def trial(self, trial: Trial, text: str) -> None:
        for listener in self._listeners:
            listener.trial(trial, text)

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()


class Bar(Listener):
    """One line that changes. `draw` shows it, an empty one takes it away."""

    def __init__(self, draw: Callable[["Bar"], None], clock: Callable[[], float] = time.monotonic):
        self._draw, self._clock = draw, clock
        self._begun = self._phase_begun = clock()
        self._first_done = 0
        self.what, self.done, self.of = "", 0, 0
        self.best: Trial | None = None

    def working(self, what: str, done: int, of: int) -> None:
        if what != self.what or done < self.done:
            self._phase_begun, self._first_done = self._clock(), done
        self.what, self.done, self.of = what, done, of
        self._draw(self)

    def trial(self, trial: Trial, text: str) -> None:
        if trial.met and (self.best is None or trial.objective < self.best.objective):
            self.best = trial

    def close(self) -> None:
        self.what = ""
        self._draw(self)

    @property
    def share(self) -> float | None:
        """How much of this part of the work is done."""
        return min(self.done / self.of, 1.0) if self.of > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Of this part of the work, if it goes on as it did."""
        fresh = self.done - self._first_done
        if self.of <= 0 or fresh <= 0:
            return None
        return (self._clock() - self._phase_begun) * max(self.of - self.done, 0) / fresh

    def parts(self) -> list[str]:
        """What there is to say beside the bar."""
        said = []
        if self.of > 0:
            said.append(f"{self.done}/{self.of}")
        if self.seconds_left is not None:
            said.append(f"{duration(self.seconds_left)} left")
        said.append(f"{duration(self._clock() - self._begun)} so far")
        if self.best is not None:
            said.append("best " + ", ".join(f"{figure:.4f}" for figure in self.best.accuracy))
        return said

    def line(self, width: int) -> str:
        """All of it on one line: it must not break, or it could not be taken back."""
        text = " | ".join(self.parts())
        if self.share is not None:
            full = round(self.share * _CELLS)
            text = f"[{'#' * full}{'.' * (_CELLS - full)}] {text}"
        room = max(width - len(text) - 2, 8)
        what = self.what if len(self.what) <= room else self.what[: room - 1] + "…"
        return f"{what} {text}"[: max(width - 1, 1)]


def duration(seconds: float) -> str:
    """For people.

    >>> duration(7.4), duration(75), duration(4000)
    ('7 s', '1 min 15 s', '1 h 6 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def on_terminal(stream: TextIO) -> Bar:
    """A bar on the last line of a terminal."""

    def draw(bar: Bar) -> None:
        text = bar.line(shutil.get_terminal_size().columns) if bar.what else ""
        stream.write("\r\x1b[K" + text)
        stream.flush()

    return Bar(draw)


def in_notebook(display: Callable[..., Any]) -> Bar:
    """A bar in the output of a cell; `display` is that of IPython.display."""
    handle: list[Any] = []

    def draw(bar: Bar) -> None:
        content = {"text/plain": "", "text/html": ""}
        if bar.what:
            share = bar.share
            meter = "<progress></progress>" if share is None else f'<progress value="{share:.3f}"></progress>'
            content = {
                "text/plain": bar.line(100),
                "text/html": f"{html.escape(bar.what)} {meter} {html.escape(' | '.join(bar.parts()))}",
            }
        if handle:
            handle[0].update(content, raw=True)
        elif bar.what:
            handle.append(display(content, raw=True, display_id=True))

    return Bar(draw)


def shown() -> Listener:
    """What suits where this program runs: a bar in a terminal or a notebook, nothing elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and hasattr(shell, "kernel"):
        return in_notebook(importlib.import_module("IPython.display").display)
    if sys.stderr is not None and sys.stderr.isatty():
        return on_terminal(sys.stderr)
    return Listener()
