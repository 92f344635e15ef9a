"""MRPC as tensors. The tokens are kilter's own: WordPiece in C++."""

from pathlib import Path

import numpy as np
import torch

import kilter

CLS, SEP = 101, 102  # in BERT's uncased vocabulary


def read(path: Path, vocabulary: Path, length: int) -> torch.utils.data.TensorDataset:
    """(tokens, segments, label) of every pair of a .tsv file."""
    settings = {
        "data_dir": str(path),
        "task": "mrpc",
        "vocab_file": str(vocabulary),
        "max_seq_length": length,
    }
    tokens, segments, labels = [], [], []
    for (ids, _, types), truth in kilter.data.Loader({"GLUE": settings}, batch_size=1024):
        tokens.append(ids)
        segments.append(types)
        labels += [int(entry["label"]) for entry in truth]
    return torch.utils.data.TensorDataset(
        torch.from_numpy(np.concatenate(tokens)),
        torch.from_numpy(np.concatenate(segments)),
        torch.tensor(labels),
    )


def halves(tokens: torch.Tensor, segments: torch.Tensor) -> tuple[list[int], list[int]]:
    """The two sentences of a pair, without the marks at their ends."""
    row = tokens.tolist()
    second = segments.tolist().index(1)
    end = second + row[second:].index(SEP)
    return row[1 : second - 1], row[second:end]


def join(first: list[int], second: list[int], length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The pair as the network takes it: [CLS] first [SEP] second [SEP], padded."""
    first, second = list(first), list(second)
    while len(first) + len(second) > length - 3:
        (first if len(first) > len(second) else second).pop()
    row = [CLS, *first, SEP, *second, SEP]
    tokens = torch.zeros(length, dtype=torch.int64)
    segments = torch.zeros(length, dtype=torch.int64)
    tokens[: len(row)] = torch.tensor(row)
    segments[len(first) + 2 : len(row)] = 1
    return tokens, segments
