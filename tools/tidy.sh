#!/usr/bin/env bash
# clang-tidy over the C++ files that differ from the main branch; over all of them with --all, which takes a while.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f build/release/build.ninja ] || cmake --preset release >/dev/null

base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
if [ "${1:-}" = --all ]; then
    files=$(git ls-files 'src/*.cc' 'python/*.cc')
else
    files=$({ git diff --name-only --diff-filter=d "$base" -- 'src/*.cc' 'python/*.cc';
              git ls-files --others --exclude-standard -- 'src/*.cc' 'python/*.cc'; } | sort -u)
fi
[ -n "$files" ] || { echo "clang-tidy: no file differs from main (tools/tidy.sh --all looks at all)"; exit 0; }
# clang cannot read gcc's precompiled headers; files include what they use, so it does without.
mkdir -p build/tidy
sed -E 's/ -Winvalid-pch| -include [^ ]*cmake_pch\.hxx//g' build/release/compile_commands.json >build/tidy/compile_commands.json
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# What is no complaint of ours (counts of warnings in system headers) is shown only when a file could not be looked at.
# shellcheck disable=SC2086 # one argument per file
printf '%s\n' $files | xargs -P "$(nproc)" -n 4 clang-tidy -p build/tidy --quiet 2>"$log" || { cat "$log" >&2; exit 1; }
echo "clang-tidy: ok, $(wc -w <<<"$files") files"
