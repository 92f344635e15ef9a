"""What tuning found, as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .search import Outcome
    from .tuning import Result

_OPERATORS = 20  # rows of operators in floating point: beyond, a number says enough


def result_html(result: Result) -> str:
    """FP32 beside the best model, why the search ended, and which operators it spared."""
    before, after = result.baseline, result.best
    rows = [
        ["accuracy", _figures(before), _figures(after), _change(before, after)],
        [
            "latency",
            _milliseconds(before),
            _milliseconds(after),
            _factor(before.milliseconds, after.milliseconds),
        ],
        ["size", _bytes(before.bytes), _bytes(after.bytes), _factor(before.bytes, after.bytes)],
        ["memory", _bytes(before.memory), _bytes(after.memory), _factor(before.memory, after.memory)],
    ]
    verdict = (
        "the promise is kept"
        if result.met
        else "the promise is <b>not</b> kept; this is the most accurate model"
    )
    ended = f"{len(result.trials)} trials in {result.seconds:.1f} s: {escape(result.ended)}"
    parts = [
        _table(["", "FP32", f"tune {after.number} (best)", ""], rows),
        f"<p>{verdict}; {ended}<br>{escape(after.operators)}</p>",
    ]
    if result.spared:
        shown = result.spared[:_OPERATORS]
        spared = [[entry.name, entry.op, entry.precision, entry.reason] for entry in shown]
        more = len(result.spared) - len(shown)
        parts.append(
            f"<details><summary>{len(result.spared)} operators in floating point</summary>"
            + _table(["operator", "type", "precision", "why"], spared)
            + (f"<p>and {more} more</p>" if more else "")
            + "</details>"
        )
    return "".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table><thead>{line(head, 'th')}</thead><tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"


def _figures(outcome: Outcome) -> str:
    return ", ".join(f"{figure:.4f}" for figure in outcome.accuracy)


def _change(before: Outcome, after: Outcome) -> str:
    pairs = zip(before.accuracy, after.accuracy, strict=True)
    return ", ".join(f"{100 * (new - old) / abs(old) if old else 0:+.2f} %" for old, new in pairs)


def _milliseconds(outcome: Outcome) -> str:
    return f"{outcome.milliseconds:.3g} ms" if outcome.milliseconds > 0 else "-"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    return f"{count:.3g} {unit}" if count > 0 else "-"


def _factor(before: float, after: float) -> str:
    return f"{before / after:.2f}x" if before > 0 and after > 0 else "-"
