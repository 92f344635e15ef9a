"""The networks of the TensorFlow documents, built from TensorFlow operators with random weights, as frozen graphs.

Every function returns a `Network`. Sizes are the full ones unless arguments say less.
    python networks.py OUT.pb resnet50        writes one
"""

import sys
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
# Loops as TensorFlow 1 writes them: Enter, Switch, Merge, Exit, NextIteration.
tf1.disable_control_flow_v2()


@dataclass
class Network:
    """A frozen graph. `islands` are the parts that can run by themselves: (inputs, outputs) by tensor name."""

    graph_def: tf1.GraphDef
    feeds: dict[str, np.ndarray]
    outputs: list[str]
    islands: list[tuple[list[str], list[str]]] = field(default_factory=list)


class Layers:
    """Layers with random constants for weights, such that activations neither vanish nor explode."""

    def __init__(self, seed=1):
        self.rng = np.random.default_rng(seed)

    def weights(self, *shape, fan_in):
        values = self.rng.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / fan_in))
        return tf.constant(values, name="weights")

    def vector(self, size, mean=0.0, spread=0.1):
        return tf.constant((mean + spread * self.rng.uniform(-1, 1, size)).astype(np.float32))

    def conv(self, x, channels, kernel=3, stride=1, padding="SAME", bias=False, dilation=1):
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        w = self.weights(*kernel, x.shape[-1], channels, fan_in=kernel[0] * kernel[1] * x.shape[-1])
        y = tf.nn.conv2d(x, w, stride, padding, dilations=dilation, name="Conv2D")
        return tf.nn.bias_add(y, self.vector(channels), name="BiasAdd") if bias else y

    def norm(self, x, epsilon=1e-3):
        c = x.shape[-1]
        return tf1.nn.fused_batch_norm(
            x,
            self.vector(c, 1.0, 0.2),
            self.vector(c),
            self.vector(c),
            self.vector(c, 1.0, 0.3),
            epsilon=epsilon,
            is_training=False,
            name="FusedBatchNorm",
        )[0]

    def conv_norm(self, x, channels, kernel=3, stride=1, padding="SAME", relu=tf.nn.relu, name=None):
        with tf1.name_scope(name or "block"):
            y = self.norm(self.conv(x, channels, kernel, stride, padding))
            return relu(y) if relu is not None else y

    def depthwise(self, x, stride=1, multiplier=1):
        c = x.shape[-1]
        w = self.weights(3, 3, c, multiplier, fan_in=9)
        return tf.nn.depthwise_conv2d(x, w, [1, stride, stride, 1], "SAME", name="depthwise")

    def separable(self, x, channels, stride=1, name=None):
        with tf1.name_scope(name or "separable"):
            y = tf.nn.relu6(self.norm(self.depthwise(x, stride)))
            return tf.nn.relu6(self.norm(self.conv(y, channels, 1)))

    def dense(self, x, units, bias=True, scale=1.0):
        w = self.rng.standard_normal((x.shape[-1], units), np.float32) * np.float32(
            scale / np.sqrt(x.shape[-1])
        )
        y = tf.matmul(x, tf.constant(w, name="kernel"), name="MatMul")
        return tf.nn.bias_add(y, self.vector(units), name="BiasAdd") if bias else y


def _finish(graph, feeds, outputs, islands=()):
    return Network(graph.as_graph_def(), feeds, outputs, list(islands))


def _image(layers, size, channels=3, batch=1):
    return layers.rng.uniform(-1, 1, (batch, size, size, channels)).astype(np.float32)


# Image classification.


def _bottleneck(layers, x, channels, stride, version, name):
    with tf1.name_scope(name):
        shortcut = x
        if stride != 1 or x.shape[-1] != 4 * channels:
            shortcut = layers.conv_norm(x, 4 * channels, 1, stride, relu=None, name="shortcut")
        # v1 strides in the first convolution, v1.5 in the 3x3 one, after padding it explicitly.
        y = layers.conv_norm(x, channels, 1, stride if version == "v1" else 1, name="conv1")
        if version == "v1.5" and stride > 1:
            y = tf.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]])
            y = layers.conv_norm(y, channels, 3, stride, padding="VALID", name="conv2")
        else:
            y = layers.conv_norm(y, channels, 3, 1, name="conv2")
        y = layers.conv_norm(y, 4 * channels, 1, relu=None, name="conv3")
        return tf.nn.relu(tf.add(0.5 * y, shortcut, name="add"))


def _resnet_body(layers, x, blocks, version="v1", width=64):
    x = tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]])
    x = layers.conv_norm(x, width, 7, 2, padding="VALID", name="conv1")
    x = tf.nn.max_pool2d(x, 3, 2, "SAME")
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if block == 0 and stage > 0 else 1
            x = _bottleneck(layers, x, width << stage, stride, version, f"stage{stage + 1}/block{block + 1}")
    return x


def resnet(blocks=(3, 4, 6, 3), version="v1", size=224, width=64, batch=1):
    layers = Layers()
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, size, size, 3], "input")
        y = _resnet_body(layers, x, blocks, version, width)
        y = tf.reduce_mean(y, [1, 2], name="pool")
        logits = layers.dense(y, 1001)
        tf.nn.softmax(logits, name="predict")
        tf.argmax(logits, 1, name="ArgMax")
    return _finish(graph, {"input:0": _image(layers, size, batch=batch)}, ["predict:0"])


def resnet50(**sizes):
    return resnet((3, 4, 6, 3), "v1", **sizes)


def resnet50v1_5(**sizes):
    return resnet((3, 4, 6, 3), "v1.5", **sizes)


def resnet101(**sizes):
    return resnet((3, 4, 23, 3), "v1", **sizes)


MOBILENET = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]


def _mobilenet_body(layers, x, width):
    maps = []
    x = tf.nn.relu6(layers.norm(layers.conv(x, int(32 * width), 3, 2)))
    for index, (channels, stride) in enumerate(MOBILENET):
        x = layers.separable(x, int(channels * width), stride, f"MobilenetV1/Conv2d_{index + 1}")
        maps.append(x)
    return maps


def mobilenet_v1(size=224, width=1.0, batch=1):
    layers = Layers()
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, size, size, 3], "input")
        y = _mobilenet_body(layers, x, width)[-1]
        y = tf.nn.avg_pool2d(y, int(y.shape[1]), 1, "VALID")
        y = layers.conv(y, 1001, 1, bias=True)
        y = tf.squeeze(y, [1, 2], name="SpatialSqueeze")
        tf.nn.softmax(y, name="MobilenetV1/Predictions/Reshape_1")
    feeds = {"input:0": _image(layers, size, batch=batch)}
    return _finish(graph, feeds, ["MobilenetV1/Predictions/Reshape_1:0"])


def inception_v3(size=299, batch=1):
    layers = Layers()
    graph = tf.Graph()

    def conv(x, channels, kernel, stride=1, padding="SAME"):
        return layers.conv_norm(x, channels, kernel, stride, padding)

    def chain(x, *steps):
        for channels, kernel in steps:
            x = conv(x, channels, kernel)
        return x

    def pool(x):
        return tf.nn.avg_pool2d(x, 3, 1, "SAME")

    def block_a(x, channels):
        return tf.concat(
            [
                conv(x, 64, 1),
                chain(x, (48, 1), (64, 5)),
                chain(x, (64, 1), (96, 3), (96, 3)),
                conv(pool(x), channels, 1),
            ],
            3,
        )

    def reduce_a(x):
        deep = conv(chain(x, (64, 1), (96, 3)), 96, 3, 2, "VALID")
        return tf.concat([conv(x, 384, 3, 2, "VALID"), deep, tf.nn.max_pool2d(x, 3, 2, "VALID")], 3)

    def block_b(x, c):
        a = chain(x, (c, 1), (c, (1, 7)), (192, (7, 1)))
        b = chain(x, (c, 1), (c, (7, 1)), (c, (1, 7)), (c, (7, 1)), (192, (1, 7)))
        return tf.concat([conv(x, 192, 1), a, b, conv(pool(x), 192, 1)], 3)

    def reduce_b(x):
        a = conv(conv(x, 192, 1), 320, 3, 2, "VALID")
        b = conv(chain(x, (192, 1), (192, (1, 7)), (192, (7, 1))), 192, 3, 2, "VALID")
        return tf.concat([a, b, tf.nn.max_pool2d(x, 3, 2, "VALID")], 3)

    def block_c(x):
        a = conv(x, 384, 1)
        b = chain(x, (448, 1), (384, 3))
        parts = [
            conv(x, 320, 1),
            conv(a, 384, (1, 3)),
            conv(a, 384, (3, 1)),
            conv(b, 384, (1, 3)),
            conv(b, 384, (3, 1)),
        ]
        return tf.concat([*parts, conv(pool(x), 192, 1)], 3)

    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, size, size, 3], "input")
        y = conv(conv(conv(x, 32, 3, 2, "VALID"), 32, 3, 1, "VALID"), 64, 3)
        y = tf.nn.max_pool2d(y, 3, 2, "VALID")
        y = conv(conv(y, 80, 1, 1, "VALID"), 192, 3, 1, "VALID")
        y = tf.nn.max_pool2d(y, 3, 2, "VALID")
        for channels in (32, 64, 64):
            y = block_a(y, channels)
        y = reduce_a(y)
        for channels in (128, 160, 160, 192):
            y = block_b(y, channels)
        y = reduce_b(y)
        y = block_c(block_c(y))
        y = tf.reduce_mean(y, [1, 2])
        tf.nn.softmax(layers.dense(y, 1001), name="predict")
    return _finish(graph, {"input:0": _image(layers, size, batch=batch)}, ["predict:0"])


# Detection. What follows the heads is a loop over images with non-maximum suppression, as TensorFlow 1 writes it.


def _suppress(boxes, scores, keep=20):
    """Detections of every image: a while loop around NonMaxSuppression."""

    def one(arguments):
        box, score = arguments
        best = tf.reduce_max(score, 1)
        chosen = tf.image.non_max_suppression(box, best, keep, 0.6)
        padding = [[0, keep - tf.size(chosen)]]
        return (
            tf.pad(tf.gather(box, chosen), [*padding, [0, 0]]),
            tf.pad(tf.gather(best, chosen), padding),
            tf.pad(tf.cast(tf.gather(tf.argmax(score, 1), chosen), tf.float32), padding),
            tf.cast(tf.size(chosen), tf.float32),
        )

    found = tf1.map_fn(one, (boxes, scores), dtype=(tf.float32,) * 4)
    for tensor, name in zip(found, ("boxes", "scores", "classes"), strict=False):
        tf.identity(tensor, f"detection_{name}")
    tf.identity(found[3], "num_detections")
    return [
        f"{name}:0" for name in ("detection_boxes", "detection_scores", "detection_classes", "num_detections")
    ]


def _preprocess(size):
    """image_tensor, resized one image at a time in a loop."""
    images = tf1.placeholder(tf.uint8, [None, None, None, 3], "image_tensor")

    def one(image):
        return tf1.image.resize_bilinear(image[tf.newaxis], [size, size])[0]

    resized = tf1.map_fn(one, tf.cast(images, tf.float32), dtype=tf.float32)
    resized = tf.reshape(resized, [-1, size, size, 3])
    return tf.subtract(resized * (2 / 255), 1.0, name="Preprocessor/sub")


def _decode(anchors, codes):
    centers, sizes = anchors[:, :2], anchors[:, 2:]
    ty, tx, th, tw = tf.unstack(codes, axis=-1)
    cy = ty / 10 * sizes[:, 0] + centers[:, 0]
    cx = tx / 10 * sizes[:, 1] + centers[:, 1]
    h = tf.exp(th / 5) * sizes[:, 0]
    w = tf.exp(tw / 5) * sizes[:, 1]
    return tf.stack([cy - h / 2, cx - w / 2, cy + h / 2, cx + w / 2], axis=-1)


def _heads(layers, maps, anchors, classes):
    boxes, scores = [], []
    for index, x in enumerate(maps):
        with tf1.name_scope(f"BoxPredictor_{index}"):
            box = layers.conv(x, anchors * 4, 1, bias=True)
            score = layers.conv(x, anchors * classes, 1, bias=True)
            count = x.shape[1] * x.shape[2] * anchors
            boxes.append(tf.reshape(box, tf.stack([tf.shape(box)[0], count, 4])))
            scores.append(tf.reshape(score, tf.stack([tf.shape(score)[0], count, classes])))
    return tf.concat(boxes, 1, name="box_codes"), tf.concat(scores, 1, name="class_logits")


def _detector(layers, size, backbone, anchors, classes, name_of_scores):
    graph = tf.Graph()
    with graph.as_default():
        x = _preprocess(size)
        codes, logits = _heads(layers, backbone(x), anchors, classes)
        grid = layers.rng.uniform(0.2, 0.8, (codes.shape[1], 4)).astype(np.float32)
        boxes = tf.identity(_decode(tf.constant(grid), 0.2 * codes), "decoded_boxes")
        scores = tf.nn.softmax(logits, name=name_of_scores)
        outputs = _suppress(boxes, scores)
    image = layers.rng.integers(0, 256, (1, size, size, 3)).astype(np.uint8)
    islands = [
        (["Preprocessor/sub:0"], ["box_codes:0", "class_logits:0", "decoded_boxes:0", f"{name_of_scores}:0"])
    ]
    return _finish(graph, {"image_tensor:0": image}, outputs, islands)


def ssd_mobilenet(size=300, width=1.0, classes=91):
    layers = Layers()

    def backbone(x):
        maps = _mobilenet_body(layers, x, width)
        chosen = [maps[10], maps[12]]
        for channels in (512, 256, 256, 128):
            y = layers.conv_norm(chosen[-1], channels // 2, 1, relu=tf.nn.relu6)
            chosen.append(layers.conv_norm(y, channels, 3, 2, relu=tf.nn.relu6))
        return chosen

    return _detector(layers, size, backbone, 3, classes, "Postprocessor/scores")


def ssd_resnet34(size=1200, width=64, classes=81):
    layers = Layers()

    def block(x, channels, stride):
        shortcut = x
        if stride != 1 or x.shape[-1] != channels:
            shortcut = layers.conv_norm(x, channels, 1, stride, relu=None)
        y = layers.conv_norm(layers.conv_norm(x, channels, 3, stride), channels, 3, relu=None)
        return tf.nn.relu(0.5 * y + shortcut)

    def backbone(x):
        x = tf.nn.max_pool2d(layers.conv_norm(x, width, 7, 2), 3, 2, "SAME")
        for stage, count in enumerate((3, 4, 6)):
            for index in range(count):
                x = block(x, width << stage, 2 if index == 0 and stage == 1 else 1)
        maps = [x]
        for channels in (512, 512, 256, 256, 256):
            y = layers.conv_norm(maps[-1], channels // 2, 1)
            maps.append(layers.conv_norm(y, channels, 3, 2))
        return maps

    return _detector(layers, size, backbone, 4, classes, "v/Softmax")


def _proposals(layers, features, count):
    """The region proposal network: the best boxes of the image, after suppression."""
    x = layers.conv_norm(features, 512, 3, name="rpn")
    codes = layers.conv(x, 12 * 4, 1, bias=True)
    logits = layers.conv(x, 12 * 2, 1, bias=True)
    codes = tf.reshape(codes, [-1, 4], name="rpn_codes")
    scores = tf.nn.softmax(tf.reshape(logits, [-1, 2]), name="rpn_scores")[:, 1]
    anchors = layers.rng.uniform(0.2, 0.8, (int(x.shape[1] * x.shape[2] * 12), 4)).astype(np.float32)
    boxes = _decode(tf.constant(anchors), 0.2 * codes)
    chosen = tf.image.non_max_suppression(boxes, scores, count, 0.7)
    boxes = tf.clip_by_value(tf.gather(boxes, chosen), 0.0, 1.0)
    return tf.pad(boxes, [[0, count - tf.size(chosen)], [0, 0]], name="proposals")


def faster_rcnn(size=600, width=64, proposals=100, classes=91):
    layers = Layers()
    graph = tf.Graph()
    with graph.as_default():
        x = _preprocess(size)
        features = tf.identity(_resnet_body(layers, x, (3, 4, 6), width=width), "features")
        boxes = _proposals(layers, features, proposals)
        crops = tf.image.crop_and_resize(features, boxes, tf.zeros([proposals], tf.int32), [14, 14])
        y = tf.nn.max_pool2d(tf.reshape(crops, [-1, 14, 14, features.shape[-1]]), 2, 2, "SAME", name="crops")
        for block in range(3):
            y = _bottleneck(layers, y, width << 3, 2 if block == 0 else 1, "v1", f"stage4/block{block + 1}")
        y = tf.reduce_mean(y, [1, 2], name="pooled")
        scores = tf.nn.softmax(layers.dense(y, classes), name="second_scores")
        refined = tf.identity(layers.dense(y, 4), "second_codes")
        final = _decode(tf.concat([boxes, boxes], 1)[:, :4], 0.1 * refined)
        outputs = _suppress(final[tf.newaxis], scores[tf.newaxis])
    image = layers.rng.integers(0, 256, (1, size, size, 3)).astype(np.uint8)
    islands = [
        (["Preprocessor/sub:0"], ["features:0", "rpn_codes:0", "rpn_scores:0"]),
        (["crops:0"], ["second_scores:0", "second_codes:0"]),
    ]
    return _finish(graph, {"image_tensor:0": image}, outputs, islands)


def rfcn(size=600, width=64, proposals=100, classes=21):
    layers = Layers()
    graph = tf.Graph()
    with graph.as_default():
        x = _preprocess(size)
        features = tf.identity(_resnet_body(layers, x, (3, 4, 6), width=width), "features")
        boxes = _proposals(layers, features, proposals)
        y = layers.conv_norm(features, 1024, 1, name="reduce")
        # One map of scores for each of the 3x3 parts of a region: position-sensitive pooling averages them.
        maps = tf.identity(layers.conv(y, 9 * classes, 1, bias=True), "score_maps")
        places = tf.zeros([proposals], tf.int32)
        parts = []
        for index, part in enumerate(tf.split(maps, 9, axis=3)):
            low = tf.constant([index // 3 / 3, index % 3 / 3], tf.float32)
            corner = boxes[:, :2] + low * (boxes[:, 2:] - boxes[:, :2])
            cell = tf.concat([corner, corner + (boxes[:, 2:] - boxes[:, :2]) / 3], 1)
            parts.append(tf.reduce_mean(tf.image.crop_and_resize(part, cell, places, [4, 4]), [1, 2]))
        scores = tf.nn.softmax(tf.add_n(parts) / 9, name="region_scores")
        outputs = _suppress(boxes[tf.newaxis], scores[tf.newaxis])
    image = layers.rng.integers(0, 256, (1, size, size, 3)).astype(np.uint8)
    islands = [(["Preprocessor/sub:0"], ["features:0", "rpn_codes:0", "rpn_scores:0", "score_maps:0"])]
    return _finish(graph, {"image_tensor:0": image}, outputs, islands)


# BERT, in the operators of its original code: matrices of (batch x sequence, hidden) between reshapes.


def bert(layers=24, hidden=1024, heads=16, length=384, vocabulary=30522, batch=1, gelu="erf", one_hot=False):
    """Answers to questions: start and end logits of every token."""
    build = Layers()
    rng = build.rng
    graph = tf.Graph()

    def table(*shape):
        return tf.constant(rng.standard_normal(shape, np.float32) * np.float32(0.02), name="table")

    def layer_norm(x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        gamma, beta = build.vector(hidden, 1.0), build.vector(hidden)
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-12)

    def activate(x):
        if gelu == "erf":
            return x * (0.5 * (1.0 + tf.math.erf(x / np.float32(np.sqrt(2.0)))))
        return x * 0.5 * (1.0 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * tf.pow(x, 3))))

    def attention(x, adder):
        def split(y):
            return tf.transpose(tf.reshape(y, [-1, length, heads, hidden // heads]), [0, 2, 1, 3])

        query, key, value = (split(build.dense(x, hidden)) for _ in range(3))
        scores = tf.matmul(query, key, transpose_b=True)
        scores = tf.multiply(scores, np.float32(1 / np.sqrt(hidden // heads))) + adder
        context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
        return tf.reshape(context, [-1, hidden])

    with graph.as_default():
        ids = tf1.placeholder(tf.int32, [None, length], "input_ids")
        mask = tf1.placeholder(tf.int32, [None, length], "input_mask")
        kinds = tf1.placeholder(tf.int32, [None, length], "segment_ids")
        words = table(vocabulary, hidden)
        flat = tf.reshape(ids, [-1])
        x = tf.matmul(tf.one_hot(flat, vocabulary), words) if one_hot else tf.gather(words, flat)
        x = tf.reshape(x, [-1, length, hidden])
        kind = tf.matmul(tf.one_hot(tf.reshape(kinds, [-1]), 2), table(2, hidden))
        x += tf.reshape(kind, [-1, length, hidden])
        x += tf.reshape(tf.slice(table(512, hidden), [0, 0], [length, -1]), [1, length, hidden])
        x = tf.reshape(layer_norm(x), [-1, hidden])
        shape = tf.shape(ids)
        ones = tf.ones(tf.stack([shape[0], length, 1]), tf.float32)
        seen = ones * tf.cast(tf.reshape(mask, tf.stack([shape[0], 1, length])), tf.float32)
        adder = (1.0 - tf.expand_dims(seen, [1])) * -10000.0
        for index in range(layers):
            with tf1.name_scope(f"bert/encoder/layer_{index}"):
                with tf1.name_scope("attention"):
                    x = layer_norm(build.dense(attention(x, adder), hidden) + x)
                inner = activate(build.dense(x, 4 * hidden))
                x = layer_norm(build.dense(inner, hidden) + x)
        logits = tf.reshape(build.dense(x, 2), [-1, length, 2])
        start, end = tf.unstack(tf.transpose(logits, [2, 0, 1]), axis=0, name="unstack")
        outputs = [start.name, end.name]
    used = rng.integers(length // 2, length, (batch, 1))
    places = np.arange(length)[None]
    feeds = {
        "input_ids:0": rng.integers(0, vocabulary, (batch, length)).astype(np.int32),
        "input_mask:0": (places < used).astype(np.int32),
        "segment_ids:0": (places > used // 3).astype(np.int32),
    }
    return _finish(graph, feeds, outputs)


NETWORKS = {
    function.__name__: function
    for function in (
        resnet50,
        resnet50v1_5,
        resnet101,
        mobilenet_v1,
        inception_v3,
        ssd_mobilenet,
        ssd_resnet34,
        faster_rcnn,
        rfcn,
        bert,
    )
}

if __name__ == "__main__":
    out, name = sys.argv[1:3]
    sizes = {key: int(value) for key, value in (text.split("=") for text in sys.argv[3:])}
    with open(out, "wb") as file:
        file.write(NETWORKS[name](**sizes).graph_def.SerializeToString())
