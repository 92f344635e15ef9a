#!/usr/bin/env bash
# Builds the wheel, installs it into a fresh virtual environment and runs the command and the Python package from there.
set -euo pipefail
cd "$(dirname "$0")/.."
work=build/wheel-test
fixture=$PWD/fixtures/fashion_mnist
rm -rf "$work" && mkdir -p "$work"
# Without isolation the wheel is built by the environment of the project, and by the compiler of the release build (pip would take
# another name of it): ccache then has every object already.
CC=cc CXX=c++ .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w "$work" .
# `python -m build` makes the wheel from the source distribution: everything that is compiled has to be in it.
.venv/bin/python -c "from scikit_build_core.build import build_sdist; build_sdist('$work')" >/dev/null
missing=$(comm -23 <(git ls-files CMakeLists.txt LICENSE README.md cmake include pyproject.toml python src | sort) \
                   <(tar tzf "$work"/kilter-*.tar.gz | cut -d/ -f2- | sort))
[ -z "$missing" ] || { echo "wheel: the source distribution lacks $missing" >&2; exit 1; }
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$work"/kilter-*.whl
cd "$work" # not where the sources are
unset LD_LIBRARY_PATH PYTHONPATH
venv/bin/kilter --version
venv/bin/kilter inspect "$fixture/model.onnx" >/dev/null
venv/bin/python - "$fixture" <<'PYTHON'
import sys
from importlib.metadata import distribution, requires
from pathlib import Path

import kilter
import numpy as np
from kilter.experimental import Quantization

# The extension runs on the oneDNN that its own dependency installed, not on one of the system.
images = np.load(sys.argv[1] + "/images.npy")[:64].astype(np.float32) / 255
labels = np.load(sys.argv[1] + "/labels.npy")[:64]
model = kilter.load(sys.argv[1] + "/model.onnx")
assert model(images).shape == (64, 10)
prefix = Path(sys.prefix).resolve()
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "libdnnl" in line or "libkilter" in line}
assert len(mapped) == 2 and all(Path(path).resolve().is_relative_to(prefix) for path in mapped), mapped
assert any("onednn" in entry for entry in requires("kilter")), requires("kilter")

# All of the package came along, with its types.
files = {str(path) for path in distribution("kilter").files}
for name in ("py.typed", "_kilter.pyi", "experimental/common.py", "frameworks/__init__.py", "strategy/strategy.py"):
    assert f"kilter/{name}" in files, name

quantizer = Quantization({"tuning": {"objective": "modelsize", "accuracy_criterion": {"relative": 0.5}}})
quantizer.model, quantizer.calib_dataloader = sys.argv[1] + "/model.onnx", [(images, labels)]
quantizer.eval_func = lambda model: float((model(images).argmax(1) == labels).mean())
quantizer.fit().save("int8.onnx")
print("wheel: ok,", kilter.__file__)
PYTHON
venv/bin/kilter eval int8.onnx --data "$fixture/images.npy" --labels "$fixture/labels.npy" --scale 1/255
