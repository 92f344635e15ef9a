#!/usr/bin/env python3
"""Prints the table of src/formats/tensorflow/output_arguments.cc: the operators of TensorFlow with several output arguments.

Run it with TensorFlow: build/venvs/tensorflow/bin/python tools/tf_output_arguments.py
"""

import tensorflow as tf
from tensorflow.python.framework import op_def_registry


def written(argument):
    """name, name#attribute that counts its tensors, or name*attribute that lists their types."""
    if argument.number_attr:
        return f"{argument.name}#{argument.number_attr}"
    return f"{argument.name}*{argument.type_list_attr}" if argument.type_list_attr else argument.name


def main():
    for name in sorted(name for name in dir(tf.raw_ops) if not name.startswith("_")):
        operator = op_def_registry.get(name)
        if operator is not None and len(operator.output_arg) > 1:
            print(name, *map(written, operator.output_arg))


if __name__ == "__main__":
    main()
