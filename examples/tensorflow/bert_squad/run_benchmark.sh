#!/usr/bin/env bash
# Measures a graph, FP32 or INT8:
#   ./run_benchmark.sh --mode=benchmark --input_model=bert_int8.pb --dataset_location=data [--batch_size=8] [--iters=50]
#   ./run_benchmark.sh --mode=accuracy --input_model=bert_int8.pb --dataset_location=data
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
exec "${PYTHON:-python3}" "$here/tune_squad.py" --mode benchmark "$@"
