"""Lists the possible inputs and outputs of a graph and its operators: `kilter inspect` under its documented name.

python summarize_graph.py --in_graph=graph.pb --input_binary
"""

import argparse
import subprocess
import sys

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-g", "--in_graph", required=True)
    parser.add_argument(
        "-b", "--input_binary", action="store_true", help="kilter sees by itself what a file is"
    )
    sys.exit(subprocess.call(["kilter", "inspect", parser.parse_args().in_graph]))
