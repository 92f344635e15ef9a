"""What MXNet calls parts of a symbol once it has fused them: sg_mkldnn_conv_bn_act_0."""

import json
from collections.abc import Iterable
from typing import Any

import mxnet as mx

__all__ = ["fused_names", "members"]

_BACKEND = "MKLDNN_QUANTIZE"


def members(symbol: Any) -> dict[str, list[str]]:
    """The operators of every fused one, by its name; those that stay alone are not there."""
    nodes = json.loads(symbol.get_backend_symbol(_BACKEND).tojson())["nodes"]
    return {
        node["name"]: [inner["name"] for inner in node["subgraphs"][0]["nodes"] if inner["op"] != "null"]
        for node in nodes
        if node.get("subgraphs")
    }


def fused_names(symbol: Any, operators: Iterable[str]) -> list[str]:
    """The operators under MXNet's names, each once."""
    parts = {part: fused for fused, names in members(symbol).items() for part in names}
    return list(dict.fromkeys(parts.get(name, name) for name in operators))


def plain(name: str) -> str:
    """MXNet 2 has another name for the same library."""
    return name.replace("sg_onednn_", "sg_mkldnn_", 1) if name.startswith("sg_onednn_") else name


def operators_named(symbol: mx.sym.Symbol, names: Iterable[str]) -> list[str]:
    """The operators that names of fused ones, or their own, mean; what is in no symbol means nothing, as in MXNet."""
    fused = members(symbol)
    known = {node["name"] for node in json.loads(symbol.tojson())["nodes"] if node["op"] != "null"}
    found = []
    for name in names:
        found += fused.get(plain(name), [name] if name in known else [])
    return found
