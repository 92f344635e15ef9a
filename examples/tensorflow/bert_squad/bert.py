"""BERT as a frozen TensorFlow graph, from the published architecture: operators and names are those of the original code.

Weights come from wherever `weights(name, shape)` takes them: a checkpoint, arrays, random numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
Weights = Callable[[str, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class Size:
    """BERT-Large unless said otherwise."""

    layers: int = 24
    hidden: int = 1024
    heads: int = 16
    length: int = 384
    vocabulary: int = 30522
    positions: int = 512
    gelu: str = "tanh"  # or erf

    @property
    def inner(self) -> int:
        return 4 * self.hidden


def random_weights(seed: int = 1) -> Weights:
    """Numbers of the size that a trained network has. Some columns are larger, as they are there."""
    rng = np.random.default_rng(seed)

    def weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
        if name.endswith("gamma"):
            return rng.uniform(0.7, 1.1, shape).astype(np.float32)
        if name.endswith(("beta", "bias")):
            return (0.05 * rng.standard_normal(shape)).astype(np.float32)
        spread = np.float32(1 / np.sqrt(shape[-2 if name.endswith("kernel") else -1]))
        return (spread * rng.standard_normal(shape)).astype(np.float32)

    return weights


def checkpoint_weights(prefix: str) -> Weights:
    """Those of a checkpoint of Google's code; a name that it lacks is an error."""
    reader = tf.train.load_checkpoint(prefix)

    def weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
        array = reader.get_tensor(name)
        if array.shape != tuple(shape):
            raise SystemExit(
                f"{prefix}: {name} has the shape {array.shape}, expected {shape}: check the sizes"
            )
        return array.astype(np.float32)

    return weights


def read_records(length: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The graph reads its own data: feeds are the name of a TFRecord file and the size of batches.

    `MakeIterator` starts it; `IteratorGetNext` gives input_ids, input_mask, segment_ids and, as :3, unique_ids.
    """
    file = tf1.placeholder(tf.string, [], "input_file")
    batch_size = tf1.placeholder(tf.int64, [], "batch_size")
    form = {
        name: tf1.FixedLenFeature([length], tf.int64) for name in ("input_ids", "input_mask", "segment_ids")
    }
    form["unique_ids"] = tf1.FixedLenFeature([], tf.int64)

    def parse(record: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            name: tf.cast(value, tf.int32) for name, value in tf1.parse_single_example(record, form).items()
        }

    dataset = tf1.data.TFRecordDataset(file).map(parse).batch(batch_size)
    iterator = tf1.data.make_initializable_iterator(dataset)
    entries = iterator.get_next()
    return entries["input_ids"], entries["input_mask"], entries["segment_ids"]


def take_arrays(length: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Feeds are the arrays themselves: kilter's engine runs such a graph without TensorFlow."""
    names = ("input_ids", "input_mask", "segment_ids")
    return tuple(tf1.placeholder(tf.int32, [None, length], name) for name in names)


class Builder:
    """Layers of BERT."""

    def __init__(self, size: Size, weights: Weights):
        self.size, self.weights = size, weights

    def constant(self, name: str, *shape: int) -> tf.Tensor:
        return tf.constant(self.weights(f"{self._scope()}{name}", shape), name=name.rpartition("/")[2])

    @staticmethod
    def _scope() -> str:
        return (
            tf1.get_default_graph().get_name_scope() + "/" if tf1.get_default_graph().get_name_scope() else ""
        )

    def dense(self, x: tf.Tensor, units: int, scope: str) -> tf.Tensor:
        with tf1.name_scope(scope):
            product = tf.matmul(x, self.constant("kernel", x.shape[-1], units), name="MatMul")
            return tf.nn.bias_add(product, self.constant("bias", units), name="BiasAdd")

    def layer_norm(self, x: tf.Tensor) -> tf.Tensor:
        with tf1.name_scope("LayerNorm"):
            mean, variance = tf.nn.moments(x, [-1], keepdims=True)
            gamma, beta = self.constant("gamma", x.shape[-1]), self.constant("beta", x.shape[-1])
            return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)

    def activate(self, x: tf.Tensor) -> tf.Tensor:
        if self.size.gelu == "erf":
            return x * (0.5 * (1.0 + tf.math.erf(x / np.float32(np.sqrt(2.0)))))
        return x * (0.5 * (1.0 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * tf.pow(x, 3)))))

    def embeddings(self, ids: tf.Tensor, kinds: tf.Tensor) -> tf.Tensor:
        size = self.size
        with tf1.name_scope("embeddings"):
            words = tf.gather(
                self.constant("word_embeddings", size.vocabulary, size.hidden), tf.reshape(ids, [-1])
            )
            x = tf.reshape(words, [-1, size.length, size.hidden])
            table = self.constant("token_type_embeddings", 2, size.hidden)
            kind = tf.matmul(tf.one_hot(tf.reshape(kinds, [-1]), 2), table)
            x += tf.reshape(kind, [-1, size.length, size.hidden])
            places = tf.slice(
                self.constant("position_embeddings", size.positions, size.hidden), [0, 0], [size.length, -1]
            )
            x += tf.reshape(places, [1, size.length, size.hidden])
            return tf.reshape(self.layer_norm(x), [-1, size.hidden])

    def attention(self, x: tf.Tensor, adder: tf.Tensor) -> tf.Tensor:
        size = self.size
        width = size.hidden // size.heads

        def split(y: tf.Tensor) -> tf.Tensor:
            return tf.transpose(tf.reshape(y, [-1, size.length, size.heads, width]), [0, 2, 1, 3])

        with tf1.name_scope("self"):
            query, key, value = (
                split(self.dense(x, size.hidden, name)) for name in ("query", "key", "value")
            )
            scores = (
                tf.multiply(tf.matmul(query, key, transpose_b=True), np.float32(1 / np.sqrt(width))) + adder
            )
            context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
            context = tf.reshape(context, [-1, size.hidden])
        with tf1.name_scope("output"):
            return self.layer_norm(self.dense(context, size.hidden, "dense") + x)

    def layer(self, x: tf.Tensor, adder: tf.Tensor) -> tf.Tensor:
        with tf1.name_scope("attention"):
            x = self.attention(x, adder)
        with tf1.name_scope("intermediate"):
            inner = self.activate(self.dense(x, self.size.inner, "dense"))
        with tf1.name_scope("output"):
            return self.layer_norm(self.dense(inner, self.size.hidden, "dense") + x)

    def encode(self, ids: tf.Tensor, mask: tf.Tensor, kinds: tf.Tensor) -> tf.Tensor:
        """One row of `hidden` numbers for every token of every sample."""
        size = self.size
        with tf1.name_scope("bert"):
            x = self.embeddings(ids, kinds)
            with tf1.name_scope("encoder"):
                seen = tf.cast(tf.reshape(mask, [-1, 1, 1, size.length]), tf.float32)
                adder = (1.0 - seen) * -10000.0
                for index in range(size.layers):
                    with tf1.name_scope(f"layer_{index}"):
                        x = self.layer(x, adder)
        return x


def answers_to_questions(size: Size, weights: Weights, records: bool = True) -> tf1.GraphDef:
    """SQuAD: unstack:0 and unstack:1 say for every token how well an answer begins and ends there."""
    graph = tf.Graph()
    with graph.as_default():
        ids, mask, kinds = read_records(size.length) if records else take_arrays(size.length)
        builder = Builder(size, weights)
        x = builder.encode(ids, mask, kinds)
        table = tf.constant(weights("cls/squad/output_weights", (2, size.hidden)))
        logits = tf.matmul(x, table, transpose_b=True, name="MatMul")
        logits = tf.nn.bias_add(logits, tf.constant(weights("cls/squad/output_bias", (2,))), name="BiasAdd")
        logits = tf.transpose(tf.reshape(logits, [-1, size.length, 2]), [2, 0, 1])
        tf.unstack(logits, axis=0, name="unstack")
    return graph.as_graph_def()


def classes_of_pairs(size: Size, weights: Weights, classes: int = 2) -> tf1.GraphDef:
    """Sentence pairs such as MRPC's: `logits` of the classes, from what the first token became."""
    graph = tf.Graph()
    with graph.as_default():
        ids, mask, kinds = take_arrays(size.length)
        builder = Builder(size, weights)
        x = tf.reshape(builder.encode(ids, mask, kinds), [-1, size.length, size.hidden])
        with tf1.name_scope("bert/"):  # once more the same
            first = tf.squeeze(x[:, 0:1, :], 1)
            pooled = tf.tanh(builder.dense(first, size.hidden, "pooler/dense"))
        table = tf.constant(weights("output_weights", (classes, size.hidden)))
        logits = tf.matmul(pooled, table, transpose_b=True, name="classifier/MatMul")
        tf.nn.bias_add(logits, tf.constant(weights("output_bias", (classes,))), name="logits")
    return graph.as_graph_def()
