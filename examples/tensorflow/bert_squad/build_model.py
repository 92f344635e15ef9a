#!/usr/bin/env python3
"""Writes BERT for SQuAD as a frozen graph: from a checkpoint of Google's code, or with random weights for size and speed.

    python build_model.py --output_model model/bert_large.pb --checkpoint bert_large_checkpoints/model.ckpt-3649
    python build_model.py --output_model model/tiny.pb --layers 2 --hidden 64 --heads 2 --max_seq_length 128

The graph reads a TFRecord file (feeds input_file and batch_size; fetches IteratorGetNext:3, unstack:0 and unstack:1). With
--arrays it takes input_ids, input_mask and segment_ids instead, as kilter's own dataset gives them.
"""

import argparse
from pathlib import Path

import bert


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output_model", type=Path, required=True, help="the .pb file to write")
    parser.add_argument("--checkpoint", help="prefix of the checkpoint; without it the weights are random")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--vocabulary", type=int, default=30522)
    parser.add_argument("--max_seq_length", type=int, default=384)
    parser.add_argument(
        "--gelu", choices=("tanh", "erf"), default="tanh", help="tanh is that of Google's code"
    )
    parser.add_argument("--arrays", action="store_true", help="feed arrays instead of the name of a file")
    parser.add_argument("--seed", type=int, default=1, help="of random weights")
    args = parser.parse_args()
    size = bert.Size(
        layers=args.layers,
        hidden=args.hidden,
        heads=args.heads,
        length=args.max_seq_length,
        vocabulary=args.vocabulary,
        gelu=args.gelu,
    )
    weights = bert.checkpoint_weights(args.checkpoint) if args.checkpoint else bert.random_weights(args.seed)
    graph_def = bert.answers_to_questions(size, weights, records=not args.arrays)
    args.output_model.parent.mkdir(parents=True, exist_ok=True)
    args.output_model.write_bytes(graph_def.SerializeToString())
    print(f"wrote {args.output_model}, {args.output_model.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
