#!/usr/bin/env bash
# Runs the steps of examples/tensorflow/Dockerfile without docker: in a fresh clone of what is committed, with a folder of its own
# instead of /opt/kilter. Then what the image is for: the command, the package and TensorFlow beside each other.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/build/dockerfile-test
rm -rf "$work" && mkdir -p "$work"
git clone --quiet --depth 1 "file://$PWD" "$work/quantization"
cd "$work/quantization"
unset LD_LIBRARY_PATH PYTHONPATH
export CC=cc CXX=c++  # under these names ccache has the objects of other builds
grep '^RUN ' examples/tensorflow/Dockerfile | sed -e 's/^RUN //' -e "s|/opt/kilter|$work/kilter|g" >"$work/steps"
[ "$(wc -l <"$work/steps")" -ge 4 ] || { echo "dockerfile: its steps were not found" >&2; exit 1; }
while IFS= read -r step; do
    echo "dockerfile: $step"
    bash -euo pipefail -c "$step" </dev/null
done <"$work/steps"
cd "$work"
PATH=$work/kilter/bin:$PATH
kilter tf quantize --help >/dev/null
python - <<'PYTHON'
import sys

import kilter.graph_converter
import tensorflow

assert kilter.__file__.startswith(sys.prefix), kilter.__file__
print("dockerfile: kilter", kilter.__version__, "beside TensorFlow", tensorflow.__version__)
PYTHON
