#!/usr/bin/env bash
# BERT-Large, fine-tuned on SQuAD v1.1, as a frozen graph:
#   ./prepare_model.sh --output_dir=./model [--checkpoint=PREFIX] [OPTIONS OF build_model.py, such as --layers 2]
# --checkpoint is there already. Without it, it is downloaded.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
output=./model
checkpoint=
words=()
for word in "$@"; do
    case "$word" in
        --output_dir=*) output="${word#*=}" ;;
        --checkpoint=*) checkpoint="${word#*=}" ;;
        *) words+=("$word") ;;
    esac
done
mkdir -p "$output"
if [ -z "$checkpoint" ]; then
    curl -fL https://storage.googleapis.com/intel-optimized-tensorflow/models/v1_8/bert_large_checkpoints.zip -o "$output/checkpoints.zip"
    unzip -o "$output/checkpoints.zip" -d "$output"
    index="$(find "$output" -name 'model.ckpt-*.index' | sort -V | tail -1)"
    checkpoint="${index%.index}"
fi
"${PYTHON:-python3}" "$here/build_model.py" --output_model "$output/bert_large.pb" --checkpoint "$checkpoint" ${words[@]+"${words[@]}"}
