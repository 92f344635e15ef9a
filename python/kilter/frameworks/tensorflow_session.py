"""Sessions of TensorFlow: graphs that are fed, and those that read their own data through an iterator."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf import text_format

__all__ = ["iterator_op", "iterator_sess_run", "make_graph", "runs_of", "write_graph"]


#: Operators that nobody reads and that start what others read.
STARTERS = ("MakeIterator", "InitializeTableV2", "InitializeTableFromTextFileV2", "LookupTableImportV2")


def make_graph(source: Any, graph: tf.Graph | None = None) -> tf.Graph:
    """A graph from a GraphDef, its bytes, or a file: a new one, or more of `graph`."""
    if isinstance(source, tf.Graph):
        return source
    graph_def = source
    is_text = isinstance(source, str | os.PathLike) and os.fspath(source).endswith(".pbtxt")
    if isinstance(source, str | os.PathLike):
        source = Path(source).read_bytes()
    if isinstance(source, bytes):
        graph_def = tf.compat.v1.GraphDef()
        if is_text:
            text_format.Parse(source, graph_def)
        else:
            graph_def.ParseFromString(source)
    graph = tf.Graph() if graph is None else graph
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    return graph


def write_graph(graph_def: Any, path: str | os.PathLike[str]) -> None:
    """Writes a GraphDef, whole or not at all; as text where the name ends in .pbtxt."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if path.suffix == ".pbtxt":
            aside.write_text(text_format.MessageToString(graph_def))
        else:
            aside.write_bytes(graph_def.SerializeToString(deterministic=True))
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def iterator_op(graph: tf.Graph) -> tf.Operation | None:
    """The operation that starts the graph's own data, when it has any."""
    return next((operation for operation in graph.get_operations() if operation.type == "MakeIterator"), None)


def iterator_sess_run(
    sess: tf.compat.v1.Session,
    iter_op: tf.Operation,
    feed_dict: Mapping[Any, Any],
    output_tensor: Any,
    iteration: int = -1,
    measurer: Any = None,
) -> list[Any]:
    """Starts the graph's own data and fetches until it ends, or `iteration` times. Returns what came, one entry for each run.

    A `measurer` is told when each run starts and ends, as in LPOT.
    """
    return list(_iterated(sess, iter_op, feed_dict, output_tensor, iteration, measurer))


def _iterated(
    session: tf.compat.v1.Session,
    start: tf.Operation,
    feeds: Mapping[Any, Any],
    fetches: Any,
    most: int = -1,
    measurer: Any = None,
) -> Iterator[Any]:
    session.run(start, feeds)
    done = 0
    while most < 0 or done < most:
        if measurer is not None:
            measurer.start()
        try:
            result = session.run(fetches)
        except tf.errors.OutOfRangeError:
            return
        if measurer is not None:
            measurer.end()
        done += 1
        yield result


def runs_of(
    session: tf.compat.v1.Session, fetches: Any, feeds: Mapping[str, Any], most: int = -1
) -> Iterator[Any]:
    """All runs that one set of feeds stands for: one, or as many as the graph's own data has."""
    start = iterator_op(session.graph)
    if start is None:
        yield session.run(fetches, dict(feeds))
    else:
        yield from _iterated(session, start, feeds, fetches, most)
