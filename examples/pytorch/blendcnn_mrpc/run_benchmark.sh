#!/usr/bin/env bash
# Measures the FP32 or the INT8 model:
#   ./run_benchmark.sh --int8=true --mode=benchmark --batch_size=32 [--input_model=saved_results]
#   ./run_benchmark.sh --int8=false --mode=accuracy --input_model=models --dataset_location=MRPC [--vocab=FILE]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
words=()
int8=false
model=
mode=benchmark
for word in "$@"; do
    value="${word#*=}"
    case "$word" in
        --int8=*) int8="${value,,}" ;;
        --mode=*) mode="$value" ;;
        --input_model=*) model="$value" ;;
        --dataset_location=* | --batch_size=* | --vocab=* | --samples=*) words+=("$word") ;;
        *) echo "run_benchmark: unknown option $word" >&2; exit 2 ;;
    esac
done
case "$int8" in
    true) words+=(--int8 "--input_model=${model:-saved_results}") ;;
    false) words+=("--input_model=${model:-models}") ;;
    *) echo "run_benchmark: --int8 is true or false, found $int8" >&2; exit 2 ;;
esac
case "$mode" in
    benchmark | accuracy) words+=("--$mode") ;;
    *) echo "run_benchmark: --mode is benchmark or accuracy, found $mode" >&2; exit 2 ;;
esac
exec "${PYTHON:-python3}" "$here/classify.py" "${words[@]}"
