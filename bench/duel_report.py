"""The tables and the plot of bench/mxnet_duel.py."""

import math
from xml.sax.saxutils import escape

COLUMNS = (
    ("Optimization method", "{name}"),
    ("Top 1", "{top1:.4f}"),
    ("Top 5", "{top5:.4f}"),
    ("Top 1 relative loss [%]", "{loss1:.2f}"),
    ("Top 5 relative loss [%]", "{loss5:.2f}"),
    ("Cost [s]", "{cost:.2f}"),
    ("Trials", "{trials}"),
    ("Validation time [s]", "{validation:.3f}"),
    ("Speedup", "{speedup:.2f}"),
)
COLOURS = {"mxnet": "#888888", "inc": "#c0504d", "kilter": "#2f6eba"}


def markdown(report):
    """The columns of MXNet's documentation, and the number of trials."""
    lines = [
        f"## {report['model']}",
        "",
        f"{report['images']} images in batches of {report['batch']}, {report['rounds']} rounds, "
        f"criterion {100 * report['max_loss']:g} % relative, {report['cores']} cores, MXNet {report['versions']['mxnet']}.",
        "",
        "| " + " | ".join(title for title, _ in COLUMNS) + " |",
        "|---" + "|---:" * (len(COLUMNS) - 1) + "|",
    ]
    for row in report["rows"]:
        if "validation" in row:
            cells = [form.format(**row) for _, form in COLUMNS]
            if row["met"] is False:
                cells[3] += " (missed)"
        else:
            cells = [row["name"], row["note"], "", "", "", f"{row['cost']:.2f}", str(row["trials"]), "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *ratios(report)])


def ratios(report):
    """kilter's fastest search that keeps the promise, against the searches of the other tool."""
    rows = {row["name"]: row for row in report["rows"] if "validation" in row}
    ours = [row for name, row in rows.items() if name.startswith("kilter ") and row["trials"] and row["met"]]
    lines = []
    for row in ours:
        parts = [f"{row['speedup']:.1f}x as fast as MXNet's FP32"]
        for strategy in ("basic", "mse", "mycustom"):
            theirs = next((entry for entry in report["rows"] if entry["name"] == f"inc {strategy}"), None)
            if theirs is None:
                continue
            faster = f"{row['speedup'] / theirs['speedup']:.2f}x as fast, " if "speedup" in theirs else ""
            parts.append(f"against INC {strategy}: {faster}found {theirs['cost'] / row['cost']:.1f}x sooner")
        lines.append(f"- {row['name']}: " + "; ".join(parts) + ".")
    return [*lines, ""] if lines else []


def plot(report):
    """Loss against speed-up; the area of a circle grows with the logarithm of what the row cost."""
    width, height, left, bottom = 760, 440, 60, 50
    rows = [row for row in report["rows"] if "validation" in row]
    fastest = max(row["speedup"] for row in rows) * 1.1
    # One row that is far off would press all others onto a line.
    top = max(5 * 100 * report["max_loss"], sorted(row["loss1"] for row in rows)[len(rows) // 2] * 2, 0.5)
    low = min(0.0, *(row["loss1"] for row in rows)) - 0.1 * top

    def place(row):
        x = left + (width - left - 20) * row["speedup"] / fastest
        y = 20 + (height - 20 - bottom) * (min(row["loss1"], top) - low) / (top - low)
        return x, y

    promise = place({"speedup": 0, "loss1": 100 * report["max_loss"]})[1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<path d="M{left} 20V{height - bottom}H{width - 20}" fill="none" stroke="black"/>',
        f'<path d="M{left} {promise:.1f}H{width - 20}" stroke="#999" stroke-dasharray="4 3"/>',
        f'<text x="{width - 24}" y="{promise - 4:.1f}" text-anchor="end" fill="#666">criterion</text>',
        f'<text x="{width / 2}" y="{height - 10}" text-anchor="middle">speed-up over MXNet FP32</text>',
        f'<text x="14" y="{height / 2}" text-anchor="middle" transform="rotate(-90 14 {height / 2})">'
        "top-1 relative loss [%], less is higher up</text>",
    ]
    step = max(1, math.ceil(fastest / 12))
    for mark in range(0, int(fastest) + 1, step):
        x = place({"speedup": mark, "loss1": 0})[0]
        parts.append(f'<text x="{x:.1f}" y="{height - bottom + 15}" text-anchor="middle">{mark}</text>')
    for mark in (0, top / 2, top):
        y = place({"speedup": 0, "loss1": mark})[1]
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{mark:.2g}</text>')
    for row in rows:
        x, y = place(row)
        radius = 3 + 3 * math.log10(1 + row["cost"])
        colour = COLOURS[row["name"].split()[0]]
        name = row["name"] + (f" ({row['loss1']:.1f} %)" if row["loss1"] > top else "")
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" fill-opacity="0.5" stroke="{colour}"/>'
            f'<text x="{x + radius + 2:.1f}" y="{y + 4:.1f}" fill="{colour}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
