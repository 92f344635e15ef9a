#!/usr/bin/env bash
# Builds the libFuzzer targets of tests/fuzz with clang and runs them on two cores for the given number of seconds.
# A finding is an error and leaves its input in build/fuzz; interesting new inputs stay in build/fuzz/*corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-30}"

[ -f build/fuzz/build.ninja ] || cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ \
    -DPython_EXECUTABLE="$PWD/.venv/bin/python" -DKILTER_FUZZ=ON
cmake --build build/fuzz -j "$(nproc)"

# fuzz TARGET CORPUS SEEDS SECONDS
fuzz() {
    local target log=build/fuzz/$1.log
    target=$(find build/fuzz -name "$1" -type f | head -n 1)
    mkdir -p "build/fuzz/$2"
    if ! "$target" -max_total_time="$4" -timeout=20 -rss_limit_mb=4096 -artifact_prefix=build/fuzz/ \
        "build/fuzz/$2" "$3" >"$log" 2>&1; then
        tail -n 60 "$log"
        echo "fuzz: a finding of $1, see above and $log"
        return 1
    fi
    echo "$1: $(grep '^Done ' "$log")"
}

status=0
{
    fuzz data_fuzz data_corpus build/fuzz/data_seeds $((seconds / 2 + 1)) &&
        fuzz config_fuzz config_corpus tests/fuzz/config_seeds $((seconds / 2 + 1))
} &
{
    fuzz onnx_reader_fuzz corpus build/fuzz/seeds $((seconds / 3 + 1)) &&
        fuzz tf_reader_fuzz graph_corpus tests/fuzz/graph_seeds $((seconds / 3 + 1)) &&
        fuzz mxnet_reader_fuzz mxnet_corpus build/fuzz/mxnet_seeds $((seconds / 3 + 1))
} || status=1
wait $! || status=1
exit $status
