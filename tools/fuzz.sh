#!/usr/bin/env bash
# Builds the libFuzzer target of tests/fuzz with clang and runs it for the given number of seconds.
# A finding is an error and leaves its input in build/fuzz; interesting new inputs stay in build/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-30}"

[ -f build/fuzz/build.ninja ] || cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ \
    -DPython_EXECUTABLE="$PWD/.venv/bin/python" -DKILTER_FUZZ=ON
cmake --build build/fuzz -j "$(nproc)"
mkdir -p build/fuzz/corpus
target=$(find build/fuzz -name onnx_reader_fuzz -type f | head -n 1)
log=build/fuzz/log.txt
if ! "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -artifact_prefix=build/fuzz/ \
    build/fuzz/corpus build/fuzz/seeds >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: a finding, see above and $log"
    exit 1
fi
grep '^Done ' "$log"
