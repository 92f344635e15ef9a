"""Quantizes a frozen ResNet-50 from Python; the paths are arguments, the rest is the documented sample.

python quantize_python.py fp32.pb "python infer.py --input_graph={}" [--output_graph int8.pb]
"""

import argparse

import kilter.graph_converter as converter


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("input_graph")
    parser.add_argument("command", help="runs inference on a few batches; {} stands for the graph")
    parser.add_argument("--output_graph")
    parser.add_argument("--inputs", default="input")
    parser.add_argument("--outputs", default="predict")
    arguments = parser.parse_args()

    rn50 = converter.GraphConverter(
        arguments.input_graph, arguments.output_graph, arguments.inputs, arguments.outputs, per_channel=True
    )
    rn50.gen_calib_data_cmds = arguments.command
    rn50.debug = True
    report = rn50.covert()
    print(
        f"{report.count('int8')} operators on integers, {report.count('fp32')} in floats: {report.output_graph}"
    )


if __name__ == "__main__":
    main()
