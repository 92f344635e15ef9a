"""Quantizes a frozen graph with the user's own inference command: `kilter tf quantize` under its documented name.

python quantize_cmd.py --input_graph fp32.pb --output_graph int8.pb --inputs input --outputs predict \\
    --callback "python infer.py --input_graph={}" --per_channel False --excluded_ops '' --excluded_nodes ''
"""

import subprocess
import sys

if __name__ == "__main__":
    sys.exit(subprocess.call(["kilter", "tf", "quantize", *sys.argv[1:]]))
