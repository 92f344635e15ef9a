#!/usr/bin/env bash
# The questions of SQuAD v1.1 and the vocabulary of BERT-Large, uncased, whole word masking:
#   ./prepare_dataset.sh --output_dir=./data [--source=FOLDER]
# --source has the files already: dev-v1.1.json and vocab.txt. Without it they are downloaded.
set -euo pipefail
output=./data
source=
for word in "$@"; do
    case "$word" in
        --output_dir=*) output="${word#*=}" ;;
        --source=*) source="${word#*=}" ;;
        *) echo "prepare_dataset: unknown option $word" >&2; exit 2 ;;
    esac
done
mkdir -p "$output"
if [ -n "$source" ]; then
    cp "$source/dev-v1.1.json" "$source/vocab.txt" "$output/"
else
    model=wwm_uncased_L-24_H-1024_A-16
    curl -fL "https://storage.googleapis.com/bert_models/2019_05_30/$model.zip" -o "$output/$model.zip"
    unzip -j -o "$output/$model.zip" "$model/vocab.txt" -d "$output"
    curl -fL https://rajpurkar.github.io/SQuAD-explorer/dataset/dev-v1.1.json -o "$output/dev-v1.1.json"
fi
echo "prepared $output: $(ls "$output" | tr '\n' ' ')"
