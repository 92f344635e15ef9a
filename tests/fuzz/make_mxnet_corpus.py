"""Writes the seed corpus of the MXNet reader's fuzzer: python make_mxnet_corpus.py DIRECTORY."""

import json
import struct
import sys
from pathlib import Path

import numpy as np

TYPES = {"float32": 0, "float64": 1, "float16": 2, "uint8": 3, "int32": 4, "int8": 5, "int64": 6}


def params(arrays, version=2):
    """A ".params" file of named arrays."""
    body = struct.pack("<QQQ", 0x112, 0, len(arrays))
    for array in arrays.values():
        if version > 0:
            body += struct.pack("<I", 0xF993FAC7 + version)
        if version > 1:
            body += struct.pack("<i", 0)
        body += struct.pack("<I", array.ndim)
        body += b"".join(struct.pack("<q" if version > 0 else "<I", size) for size in array.shape)
        body += struct.pack("<iii", 1, 0, TYPES[array.dtype.name]) + array.tobytes()
    body += struct.pack("<Q", len(arrays))
    return body + b"".join(struct.pack("<Q", len(name)) + name.encode() for name in arrays)


def symbol(*nodes):
    """Nodes as (op, name, attributes, names of inputs); the last one is the output."""
    place = {name: index for index, (_, name, _, _) in enumerate(nodes)}
    return json.dumps(
        {
            "nodes": [
                {"op": op, "name": name, "attrs": attributes, "inputs": [[place[i], 0, 0] for i in inputs]}
                for op, name, attributes, inputs in nodes
            ],
            "arg_nodes": [index for index, node in enumerate(nodes) if node[0] == "null"],
            "heads": [[len(nodes) - 1, 0, 0]],
            "attrs": {"mxnet_version": ["int", 10901]},
        }
    ).encode()


def variable(name, **attributes):
    return ("null", name, attributes, [])


def seeds():
    random = np.random.default_rng(1)

    def weights(*shape, dtype=np.float32):
        return random.standard_normal(shape).astype(dtype)

    data = variable("data", __shape__="(1, 2, 6, 6)")
    conv = {"kernel": "(3, 3)", "num_filter": "2", "pad": "(1, 1)"}
    norm = {name: weights(2) for name in ("arg:g", "arg:b")} | {"aux:m": weights(2), "aux:v": weights(2) ** 2}
    yield (
        symbol(
            data,
            *(variable(name) for name in ("w", "c", "g", "b", "m", "v")),
            ("Convolution", "conv", conv, ["data", "w", "c"]),
            ("BatchNorm", "bn", {"fix_gamma": "False"}, ["conv", "g", "b", "m", "v"]),
            ("Activation", "relu", {"act_type": "relu"}, ["bn"]),
            ("elemwise_add", "add", {}, ["relu", "data"]),
            (
                "Pooling",
                "pool",
                {"kernel": "(2, 2)", "stride": "(2, 2)", "pooling_convention": "full"},
                ["add"],
            ),
        ),
        params({"arg:w": weights(2, 2, 3, 3), "arg:c": weights(2)} | norm),
    )
    yield (
        symbol(
            variable("data", __shape__="(2, 4)"),
            variable("w"),
            ("FullyConnected", "fc", {"num_hidden": "3", "no_bias": "True"}, ["data", "w"]),
            ("softmax", "softmax", {"axis": "-1", "temperature": "2"}, ["fc"]),
        ),
        params({"arg:w": weights(3, 4)}, version=1),
    )
    for op, attributes in [
        ("Reshape", {"shape": "(0, -4, 2, -1, -2)"}),
        ("slice", {"begin": "(None, 1)", "end": "(1, None)", "step": "(1, 2)"}),
        ("transpose", {"axes": "(0, 2, 3, 1)"}),
        ("SliceChannel", {"num_outputs": "2", "axis": "1"}),
        ("mean", {"axis": "(2, 3)", "exclude": "True"}),
        ("pad", {"mode": "constant", "pad_width": "(0, 0, 0, 0, 1, 1, 2, 0)"}),
        ("_plus_scalar", {"scalar": "1e-3"}),
        ("UpSampling", {"scale": "2", "sample_type": "nearest"}),
        ("topk", {"k": "2", "ret_typ": "both"}),
        ("NoSuchOperator", {}),
    ]:
        yield symbol(data, (op, "y", attributes, ["data"])), params({})


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for index, (text, arrays) in enumerate(seeds()):
        (folder / f"model{index}").write_bytes(text + b"\0" + arrays)
    kinds = {f"arg:{name}": np.ones((2, 1), name) for name in TYPES}
    for version in (0, 1, 2, 3):
        (folder / f"params{version}").write_bytes(params(kinds, version))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
