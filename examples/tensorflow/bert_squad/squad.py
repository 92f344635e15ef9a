"""SQuAD v1.1: questions become features, features a TFRecord file, logits answers, answers a score.

Tokens and windows are those of kilter's dataset `SQuAD`, the score that of its metric `SquadF1`: both are C++.
"""

import json
from collections import namedtuple
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

import kilter

FIRST_UNIQUE_ID = 1_000_000_000

RawResult = namedtuple("RawResult", ["unique_id", "start_logits", "end_logits"])


class Feature:
    """One window of a paragraph with its question, as the network takes it; and where its tokens stand in the paragraph."""

    def __init__(self, index: int, inputs: Sequence[np.ndarray], label: dict):
        self.unique_id = FIRST_UNIQUE_ID + index
        self.input_ids, self.input_mask, self.segment_ids = inputs
        self.question = str(label["id"])
        self.context = str(label["context"]).encode()
        self.token_start, self.token_end = label["token_start"], label["token_end"]
        self.max_context = label["max_context"]


def read_squad_examples(input_file: str | Path) -> list[dict]:
    """Every question with its id and its answers."""
    articles = json.loads(Path(input_file).read_text(encoding="utf-8"))["data"]
    return [
        {
            "id": str(qa["id"]),
            "question": qa["question"],
            "answers": [answer["text"] for answer in qa["answers"]],
        }
        for article in articles
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    ]


def parse_label_file(label_file: str | Path) -> dict[str, list[str]]:
    """The answers to every question, by its id."""
    return {example["id"]: example["answers"] for example in read_squad_examples(label_file)}


def convert_examples_to_features(
    input_file: str | Path,
    vocab_file: str | Path,
    max_seq_length: int = 384,
    doc_stride: int = 128,
    max_query_length: int = 64,
    do_lower_case: bool = True,
) -> list[Feature]:
    """All windows of all questions."""
    settings = {
        "root": str(input_file),
        "vocab_file": str(vocab_file),
        "max_seq_length": max_seq_length,
        "doc_stride": doc_stride,
        "max_query_length": max_query_length,
        "do_lower_case": do_lower_case,
    }
    features: list[Feature] = []
    for inputs, labels in kilter.data.Loader({"SQuAD": settings}, batch_size=64):
        for row, label in enumerate(labels):
            features.append(Feature(len(features), [array[row] for array in inputs], label))
    return features


class FeatureWriter:
    """Writes features to the TFRecord file that the graph reads."""

    def __init__(self, filename: str | Path):
        self.filename = str(filename)
        self.num_features = 0
        self._writer = tf.io.TFRecordWriter(self.filename)

    def process_feature(self, feature: Feature) -> None:
        def numbers(values: Iterable[int]) -> tf.train.Feature:
            return tf.train.Feature(int64_list=tf.train.Int64List(value=list(values)))

        entries = {
            name: numbers(getattr(feature, name)) for name in ("input_ids", "input_mask", "segment_ids")
        }
        entries["unique_ids"] = numbers([feature.unique_id])
        example = tf.train.Example(features=tf.train.Features(feature=entries))
        self._writer.write(example.SerializeToString())
        self.num_features += 1

    def close(self) -> None:
        self._writer.close()


class SquadV1PostTransform:
    """From logits to texts: the best pair of beginning and end over all windows of a question.

    The `n_best_size` best beginnings and ends are paired; an answer lies in the paragraph, begins where its window sees most around it, and
    has at most `max_answer_length` tokens. A question without any such pair is answered "empty".
    """

    def __init__(
        self,
        eval_examples: Sequence[dict],
        eval_features: Sequence[Feature],
        n_best_size: int = 20,
        max_answer_length: int = 30,
        do_lower_case: bool = True,
    ):
        self.examples, self.features = eval_examples, eval_features
        self.n_best_size, self.max_answer_length = n_best_size, max_answer_length
        self.do_lower_case = do_lower_case  # answers are cut out of the paragraph as it is written

    def __call__(self, sample: tuple[Sequence[RawResult], dict]) -> tuple[dict[str, str], dict]:
        all_results, label = sample
        by_id = {result.unique_id: result for result in all_results}
        best: dict[str, tuple[float, str]] = {example["id"]: (-np.inf, "empty") for example in self.examples}
        for feature in self.features:
            if feature.unique_id in by_id:
                found = self._answer(feature, by_id[feature.unique_id])
                best[feature.question] = max(best[feature.question], found, key=lambda entry: entry[0])
        return {question: text for question, (_, text) in best.items()}, label

    def _answer(self, feature: Feature, result: RawResult) -> tuple[float, str]:
        start, end = np.asarray(result.start_logits), np.asarray(result.end_logits)
        starts = np.argsort(-start, kind="stable")[: self.n_best_size]
        ends = np.argsort(-end, kind="stable")[: self.n_best_size]
        starts = starts[(feature.token_start[starts] >= 0) & (feature.max_context[starts] != 0)]
        ends = ends[feature.token_start[ends] >= 0]
        length = ends[None, :] - starts[:, None] + 1
        allowed = (length >= 1) & (length <= self.max_answer_length)
        if not allowed.any():
            return -np.inf, "empty"
        sums = np.where(allowed, start[starts][:, None] + end[ends][None, :], -np.inf)
        first, last = np.unravel_index(np.argmax(sums), sums.shape)
        text = feature.context[feature.token_start[starts[first]] : feature.token_end[ends[last]]]
        return float(sums[first, last]), text.decode()


class SquadF1:
    """The official score, 0 to 100: the overlap of words with the best of the answers, without case, punctuation and articles."""

    def __init__(self) -> None:
        self._metric = kilter.metrics.SquadF1()

    def reset(self) -> None:
        self._metric.reset()

    def update(self, preds: dict[str, str], label: dict[str, list[str]]) -> None:
        """Texts and true answers by the ids of the questions."""
        asked = [question for question in preds if question in label]
        texts = np.array([preds[question] for question in asked], object)
        self._metric.update(texts, [{"id": question, "answers": label[question]} for question in asked])

    def result(self) -> float:
        return self._metric.result()
