#!/usr/bin/env python3
"""MRPC in the files of GLUE, from those that Microsoft Research publishes.

    python prepare_data.py --source msr_paraphrase --output MRPC

`--source` holds msr_paraphrase_train.txt and msr_paraphrase_test.txt. The training pairs are divided: those of dev_ids.tsv, when the
source has that file of GLUE, and otherwise every tenth, become dev.tsv. Models are chosen by dev.tsv; test.tsv is looked
at in the end only.
"""

import argparse
from pathlib import Path


def rows(path: Path) -> list[str]:
    """Lines after the header: Quality, #1 ID, #2 ID, #1 String, #2 String."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    for number, line in enumerate(lines[1:], 2):
        if len(line.split("\t")) != 5:
            raise SystemExit(f"{path}: line {number} has {len(line.split(chr(9)))} columns, MRPC has 5")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--source", type=Path, required=True, help="folder with msr_paraphrase_{train,test}.txt"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("MRPC"), help="folder for train.tsv, dev.tsv, test.tsv"
    )
    args = parser.parse_args()

    header, *train = rows(args.source / "msr_paraphrase_train.txt")
    ids = args.source / "dev_ids.tsv"
    if ids.exists():
        wanted = {tuple(line.split("\t")) for line in ids.read_text().splitlines()}
        held_out = [tuple(line.split("\t")[1:3]) in wanted for line in train]
    else:
        held_out = [number % 10 == 0 for number in range(len(train))]
    parts = {
        "train": [line for line, out in zip(train, held_out, strict=True) if not out],
        "dev": [line for line, out in zip(train, held_out, strict=True) if out],
        "test": rows(args.source / "msr_paraphrase_test.txt")[1:],
    }
    args.output.mkdir(parents=True, exist_ok=True)
    for name, lines in parts.items():
        text = "\n".join([header, *lines]) + "\n"
        (args.output / f"{name}.tsv").write_text(text, encoding="utf-8")
        positive = sum(line.startswith("1") for line in lines)
        print(f"{name}.tsv: {len(lines)} pairs, {positive / len(lines):.1%} paraphrases")


if __name__ == "__main__":
    main()
