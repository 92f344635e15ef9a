#!/usr/bin/env bash
# Makes the virtual environment of a framework that kilter is checked against, and installs the built kilter into it:
#   tools/framework_env.sh torch|tensorflow|mxnet
# The packages are those of requirements/frameworks/NAME.txt; those of NAME.alone.txt are installed without what they ask for.
# The environment is build/venvs/NAME. Nothing is downloaded when it is up to date; kilter itself is always refreshed.
set -euo pipefail
cd "$(dirname "$0")/.."
name="${1:?usage: tools/framework_env.sh torch|tensorflow|mxnet}"
list="requirements/frameworks/$name.txt"
alone="requirements/frameworks/$name.alone.txt"
[ -f "$list" ] || { echo "framework_env: there is no $list" >&2; exit 2; }
[ -f "$alone" ] || alone=/dev/null
env="build/venvs/$name"
if ! cat "$list" "$alone" | cmp -s - "$env/.packages"; then
    [ -x "$env/bin/python" ] || { echo "setup: ${PYTHON:-python3} -m venv $env"; "${PYTHON:-python3}" -m venv "$env"; }
    echo "setup: pip install -r $list, into $env"
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list"
    "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$alone"
    [ "$name" != torch ] || "$env/bin/python" tools/cuda_stand_ins.py "$env"
    cat "$list" "$alone" >"$env/.packages"
fi
cmake --install build/release --component python --prefix "$env" >/dev/null
