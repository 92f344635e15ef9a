#!/usr/bin/env bash
# Finds the INT8 model:
#   ./run_tuning.sh --input_model=models --dataset_location=MRPC --output_model=saved_results [--config=blendcnn.yaml] [--vocab=FILE]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
words=()
for word in "$@"; do
    case "$word" in
        --config=*) words+=("--tuned_yaml=${word#*=}") ;;
        --input_model=* | --dataset_location=* | --output_model=* | --vocab=* | --batch_size=*) words+=("$word") ;;
        *) echo "run_tuning: unknown option $word" >&2; exit 2 ;;
    esac
done
exec "${PYTHON:-python3}" "$here/classify.py" --tune "${words[@]}"
