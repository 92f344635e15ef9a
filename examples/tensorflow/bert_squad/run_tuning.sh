#!/usr/bin/env bash
# Finds the INT8 graph:
#   ./run_tuning.sh --input_model=model/bert_large.pb --dataset_location=data --output_model=bert_int8.pb [--config=bert.yaml] [--batch_size=8]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
exec "${PYTHON:-python3}" "$here/tune_squad.py" --mode tune "$@"
