#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh virtual environment and runs the command and the Python package from there.
set -euo pipefail
cd "$(dirname "$0")/.."
work=build/wheel-test
model=$PWD/fixtures/fashion_mnist/model.onnx
rm -rf "$work" && mkdir -p "$work"
# Without isolation the wheel is built by the environment of the project: what is compiled already is not compiled again.
.venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w "$work" .
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$work"/kilter-*.whl
cd "$work" # not where the sources are
venv/bin/kilter --version
venv/bin/kilter inspect "$model" >/dev/null
venv/bin/python - "$model" <<'EOF'
import sys

import kilter
import numpy as np

model = kilter.load(sys.argv[1])
shape = [size if isinstance(size, int) else 1 for size in model.inputs[0].shape]
for name, array in model.run({model.inputs[0].name: np.zeros(shape, np.float32)}).items():
    assert np.isfinite(array).all(), name
print("wheel: ok,", kilter.__file__)
EOF
