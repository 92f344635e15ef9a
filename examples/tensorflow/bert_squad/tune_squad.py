#!/usr/bin/env python3
"""Tunes BERT on SQuAD v1.1 to INT8, and measures it; see README.md.

python tune_squad.py --mode tune --input_model model/bert_large.pb --output_model bert_int8.pb --dataset_location data
python tune_squad.py --mode accuracy --input_model bert_int8.pb --dataset_location data
python tune_squad.py --mode benchmark --input_model bert_int8.pb --dataset_location data --batch_size 8 --iters 50
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from squad import (
    FeatureWriter,
    RawResult,
    SquadF1,
    SquadV1PostTransform,
    convert_examples_to_features,
    parse_label_file,
    read_squad_examples,
)

from kilter.frameworks.tensorflow import make_graph, write_graph
from kilter.quantization import Quantization

HERE = Path(__file__).resolve().parent
WARMUP = 5


class Dataset:
    """What starts the graph's own data, once: the name of its file and the size of batches."""

    def __init__(self, file_name: str, batch_size: int):
        self.file_name, self.batch_size = file_name, batch_size

    def __getitem__(self, index: int) -> tuple[tuple[str, int], int]:
        if index > 0:
            raise IndexError(index)
        return (self.file_name, self.batch_size), 0

    def __len__(self) -> int:
        return 1


def collate_fn(batch: list) -> tuple[tuple[str, int], int]:
    """A batch is the one sample: the graph makes its own batches."""
    return batch[0]


class Squad:
    """The questions, their features, and the file with them that graphs read."""

    def __init__(self, flags: argparse.Namespace, folder: str):
        self.flags = flags
        self.examples = read_squad_examples(flags.label_file)
        self.features = convert_examples_to_features(
            flags.label_file,
            flags.vocab_file,
            flags.max_seq_length,
            flags.doc_stride,
            flags.max_query_length,
            flags.do_lower_case,
        )
        writer = FeatureWriter(Path(folder) / "eval.tf_record")
        for feature in self.features:
            writer.process_feature(feature)
        writer.close()
        self.file_name = writer.filename

    def evaluate(self, graph: tf.Graph, iterations: int = -1) -> float | None:
        """F1 of a graph; None when it ran only a number of iterations. Prints how fast it was."""
        flags = self.flags
        fetches = {
            "unique_ids": graph.get_tensor_by_name("IteratorGetNext:3"),
            "start_logits": graph.get_tensor_by_name("unstack:0"),
            "end_logits": graph.get_tensor_by_name("unstack:1"),
        }
        feeds = {"input_file:0": self.file_name, "batch_size:0": flags.batch_size}
        results, seconds = [], []
        config = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=flags.threads, inter_op_parallelism_threads=1
        )
        with tf.compat.v1.Session(graph=graph, config=config) as session:
            session.run(graph.get_operation_by_name("MakeIterator"), feeds)
            while iterations < 0 or len(seconds) < iterations:
                start = time.perf_counter()
                try:
                    found = session.run(fetches)
                except tf.errors.OutOfRangeError:
                    break
                seconds.append(time.perf_counter() - start)
                results += map(
                    RawResult, found["unique_ids"].tolist(), found["start_logits"], found["end_logits"]
                )
        latency = float(np.mean(seconds[WARMUP:] or seconds)) / flags.batch_size
        print(f"Batch size = {flags.batch_size}")
        print(f"Latency: {latency * 1000:.3f} ms")
        print(f"Throughput: {1 / latency:.3f} images/sec")
        return None if iterations >= 0 else self.score(results)

    def score(self, results: list[RawResult]) -> float:
        transform = SquadV1PostTransform(
            self.examples,
            self.features,
            self.flags.n_best_size,
            self.flags.max_answer_length,
            self.flags.do_lower_case,
        )
        preds, label = transform((results, parse_label_file(self.flags.label_file)))
        f1 = SquadF1()
        f1.update(preds, label)
        print(f"Accuracy is {f1.result():.3f}")
        return f1.result()


def tune(squad: Squad, flags: argparse.Namespace) -> None:
    quantizer = Quantization(str(flags.config))
    dataloader = quantizer.dataloader(Dataset(squad.file_name, flags.batch_size), collate_fn=collate_fn)
    q_model = quantizer(make_graph(flags.input_model), q_dataloader=dataloader, eval_func=squad.evaluate)
    write_graph(q_model.as_graph_def(), flags.output_model)
    print(f"wrote {flags.output_model}; the accuracy goal is {'met' if quantizer.met else 'missed'}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--mode", choices=("tune", "benchmark", "accuracy"), default="tune")
    add("--input_model", required=True, help="frozen graph")
    add("--output_model", help="where the INT8 graph goes")
    add("--dataset_location", type=Path, default=Path("data"), help="folder with dev-v1.1.json and vocab.txt")
    add(
        "--label_file", type=Path, help="questions and answers (default: dev-v1.1.json in --dataset_location)"
    )
    add("--vocab_file", type=Path, help="default: vocab.txt in --dataset_location")
    add("--config", type=Path, default=HERE / "bert.yaml", help="how to tune")
    add("--batch_size", "--predict_batch_size", dest="batch_size", type=int, default=8)
    add("--iters", type=int, default=-1, help="batches of a benchmark (default: all)")
    add("--max_seq_length", type=int, default=384)
    add("--doc_stride", type=int, default=128)
    add("--max_query_length", type=int, default=64)
    add("--n_best_size", type=int, default=20)
    add("--max_answer_length", type=int, default=30)
    add("--do_lower_case", type=lambda text: text.lower() in ("true", "1", "yes"), default=True)
    add("--threads", type=int, default=0, help="of one session (default: all cores)")
    flags = parser.parse_args()
    flags.label_file = flags.label_file or flags.dataset_location / "dev-v1.1.json"
    flags.vocab_file = flags.vocab_file or flags.dataset_location / "vocab.txt"
    if flags.mode == "tune" and not flags.output_model:
        parser.error("--mode tune needs --output_model")
    return flags


def main() -> None:
    flags = parse()
    with tempfile.TemporaryDirectory(prefix="squad-") as folder:
        squad = Squad(flags, folder)
        if flags.mode == "tune":
            tune(squad, flags)
        else:
            squad.evaluate(make_graph(flags.input_model), flags.iters if flags.mode == "benchmark" else -1)


if __name__ == "__main__":
    main()
