#!/usr/bin/env bash
# Runs a GoogleTest program as one process for every core, each with its share of the tests and a folder of its own for files;
# fails when one of them does.
set -uo pipefail
shards="$(nproc)"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
pids=()
for ((shard = 0; shard < shards; shard++)); do
    mkdir "$folder/$shard"
    GTEST_TOTAL_SHARDS="$shards" GTEST_SHARD_INDEX="$shard" TMPDIR="$folder/$shard" TEST_TMPDIR="$folder/$shard" \
        OMP_WAIT_POLICY=passive "$@" &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
    wait "$pid" || status=1
done
exit $status
