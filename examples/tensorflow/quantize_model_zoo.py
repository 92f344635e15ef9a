"""Quantizes a model of Intel's Model Zoo: `kilter tf zoo` under its documented name.

python quantize_model_zoo.py --model resnet50 --in_graph fp32.pb --out_graph int8.pb --data_location imagenet \\
    --models_zoo_location models
"""

import subprocess
import sys

if __name__ == "__main__":
    sys.exit(subprocess.call(["kilter", "tf", "zoo", *sys.argv[1:]]))
