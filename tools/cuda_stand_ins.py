#!/usr/bin/env python3
"""Lets PyPI's torch run on a machine without CUDA: one small library under the names of all of CUDA's.

    python tools/cuda_stand_ins.py build/venvs/torch

torch is linked against CUDA, whose libraries are some gigabytes and are never called where there is no GPU. Every
function of the stand-in says what the real one would say there: no device.
"""

import argparse
import re
import subprocess
from pathlib import Path

CUDA = re.compile(r"(_*cu|nccl|nvshmem|nvrtc|nvml|nvtx|nvJit)\w*$")
NO_DEVICE = 100  # cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE; not 0 for the other libraries either


def output_of(*command: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", type=Path, help="a virtual environment with torch")
    folder = next(parser.parse_args().environment.glob("lib/python*/site-packages/torch/lib"))

    present = {path.name for path in folder.iterdir() if not path.is_symlink()}
    libraries, functions = set(), {}
    for path in folder.glob("*.so"):
        needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-d", path))
        libraries |= {name for name in needed if re.match(r"lib(cu|nccl|nv)", name)} - present
        symbols = re.findall(r" U (\w+)(?:@(\S+))?", output_of("nm", "-D", "--undefined-only", path))
        functions |= {name: version for name, version in symbols if CUDA.match(name)}

    # The loader insists on the versions that torch was linked with.
    versions = ""
    for version in sorted(set(functions.values()) - {""}):
        names = "; ".join(name for name, own in functions.items() if own == version)
        versions += f"{version} {{ {names}; }};\n"
    source = "".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n" for name in functions)
    (folder / "no_cuda.map").write_text(versions)
    stand_in = folder / "no_cuda.so"
    options = ["-shared", "-fPIC", "-fno-builtin", f"-Wl,--version-script={folder / 'no_cuda.map'}"]
    command = ["cc", *options, "-x", "c", "-", "-o", str(stand_in)]
    subprocess.run(command, check=True, input=source, text=True)
    for name in libraries:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(stand_in.name)
    print(f"setup: {len(functions)} functions of {len(libraries)} CUDA libraries say that there is no device")


if __name__ == "__main__":
    main()
