"""Runs `kilter tf zoo` for a model of Intel's Model Zoo in the container that the Dockerfile here makes.

docker build -t quantization:latest -f examples/tensorflow/Dockerfile .
python launch_quantization.py --docker-image quantization:latest --in_graph=/path/to/in_graph.pb --model_name=resnet50 \\
    --models_zoo=/path/to/models_zoo --out_graph=/path/to/output.pb --data_location=/path/to/dataset
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

WORKSPACE = "/workspace"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-i", "--docker-image", required=True)
    parser.add_argument("-g", "--in_graph", type=Path, help="mounted as pretrained_models/in_graph.pb")
    parser.add_argument("-o", "--out_graph", type=Path, help="its folder is mounted as output")
    parser.add_argument("-d", "--data_location", type=Path)
    parser.add_argument("-z", "--models_zoo", type=Path)
    parser.add_argument("-n", "--model_name", default="resnet50")
    parser.add_argument("-s", "--models_source_dir", type=Path)
    parser.add_argument("--debug", action="store_true", help="opens a shell in the container instead")
    parser.add_argument("--intermediate", action="store_true", help="keeps the intermediate graphs")
    parser.add_argument("--print-command", action="store_true", help="shows what would be run, and does not")
    return parser.parse_args()


def plain(path):
    """A path to mount. Links are refused: they would show the container something else than what was named."""
    if path.is_symlink() or (path.is_file() and path.stat().st_nlink > 1):
        sys.exit(f"launch_quantization: {path} is a link; give the file itself")
    if not path.exists():
        sys.exit(f"launch_quantization: {path} does not exist")
    return path.resolve()


def docker_command(options):
    mounts = []
    inside = ["kilter", "tf", "zoo", "--model", options.model_name, "--python", "python3"]

    def mount(path, target, option=None, read_only=True):
        if path is None:
            return
        mounts.extend(["--volume", f"{plain(path)}:{WORKSPACE}/{target}{':ro' if read_only else ''}"])
        if option:
            inside.extend([option, f"{WORKSPACE}/{target}"])

    mount(options.in_graph, "pretrained_models/in_graph.pb", "--in_graph")
    mount(options.data_location, "dataset", "--data_location")
    mount(options.models_zoo, "models_zoo", "--models_zoo_location")
    mount(options.models_source_dir, "models_source", "--models_source_dir")
    if options.out_graph is not None:
        mount(options.out_graph.absolute().parent, "output", read_only=False)
        inside += ["--out_graph", f"{WORKSPACE}/output/{options.out_graph.name}"]
    inside += ["--debug", str(options.intermediate).lower()]
    user = ["--user", f"{os.getuid()}:{os.getgid()}"]  # results belong to whoever asked for them
    shell = ["--interactive", "--tty"] if options.debug else []
    command = ["bash"] if options.debug else inside
    return [
        "docker",
        "run",
        "--rm",
        *shell,
        *user,
        *mounts,
        "--workdir",
        WORKSPACE,
        options.docker_image,
        *command,
    ]


def main():
    options = arguments()
    if not options.debug and (options.in_graph is None or options.models_zoo is None):
        sys.exit("launch_quantization: --in_graph and --models_zoo are needed, or --debug for a shell")
    command = docker_command(options)
    if options.print_command:
        print(" ".join(command))
        return
    sys.exit(subprocess.call(command))


if __name__ == "__main__":
    main()
