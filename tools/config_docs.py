"""Writes the table of keys in docs/config.md from docs/config.schema.json: python tools/config_docs.py [--check]."""

import json
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- keys: written by tools/config_docs.py -->\n", "<!-- end of keys -->\n"


def resolved(schema, root):
    """A schema with its reference followed; what stands beside the reference wins."""
    if "$ref" not in schema:
        return schema
    return root["$defs"][schema["$ref"].rsplit("/", 1)[1]] | {k: v for k, v in schema.items() if k != "$ref"}


def allowed(schema):
    """What a value may be, in a few words."""
    if "enum" in schema:
        return ", ".join(str(word) for word in schema["enum"])
    for option in schema.get("anyOf", []):
        if option.get("type") == "array":
            one = allowed(option["items"])
            return f"list of: {one}" if one else "list"
        if option.get("type") in ("integer", "number"):
            words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
            limits = [f"{sign} {option[key]:g}" for key, sign in words.items() if key in option]
            kind = "whole number" if option["type"] == "integer" else "number"
            return " ".join([kind, " and ".join(limits)]).strip()
        if option.get("type") == "object" and "properties" not in option:
            return "name: settings"
    kind = schema.get("type")
    if kind == "boolean":
        return "true, false"
    if isinstance(kind, list) and "array" in kind:
        return "names: settings"
    return "text" if isinstance(kind, list) and "string" in kind else ""


def rows(schema, root, spelled, path=""):
    """One row for every key; a part that stands in several places is spelled out once."""
    for name, raw in schema.get("properties", {}).items():
        full = f"{path}.{name}" if path else name
        entry = resolved(raw, root)
        maps = [option for option in [entry, *entry.get("anyOf", [])] if "properties" in option]
        if "not" in entry:
            yield full, "refused", "", entry["description"]
            continue
        default = entry.get("default", "")
        text = "" if default in ("", {}) else f"`{json.dumps(default)}`"
        other = entry.get("additionalProperties")
        open_map = isinstance(other, dict)
        yield full, "map" if maps or open_map else allowed(entry), text, entry.get("description", "")
        reference = raw.get("$ref") or (other.get("$ref") if open_map else None)
        if reference in spelled:
            continue
        if reference:
            spelled.add(reference)
        if open_map and other:
            yield from rows(resolved(other, root), root, spelled, f"{full}.NAME")
        for each in maps:
            yield from rows(each, root, spelled, full)


def table():
    root = json.loads((DOCS / "config.schema.json").read_text())
    lines = ["| key | allowed | default | meaning |", "|---|---|---|---|"]
    for key, values, default, meaning in rows(root, root, set()):
        lines.append(f"| `{key}` | {values} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def main():
    page = DOCS / "config.md"
    text = page.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + table() + END + after
    if "--check" in sys.argv and wanted != text:
        sys.exit("docs/config.md is not up to date: run python tools/config_docs.py")
    page.write_text(wanted)


if __name__ == "__main__":
    main()
