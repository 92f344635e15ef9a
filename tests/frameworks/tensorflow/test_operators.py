"""One small graph per operator and choice of attributes: what kilter computes is what TensorFlow computes."""

import numpy as np
import pytest

import kilter
from conftest import assert_close, check_graph, tf, write_graph

raw = tf.raw_ops
RNG = np.random.default_rng(7)


def floats(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype(np.float32)


def ints(*shape, low=-9, high=10, dtype=np.int32):
    return RNG.integers(low, high, shape).astype(dtype)


def bools(*shape):
    return RNG.integers(0, 2, shape).astype(bool)


CASES = {}


def case(name, build, *arrays, shapes=None, tolerance=1e-4):
    """A graph whose placeholders hold `arrays` (of fixed shape, or of `shapes`) and whose outputs `build` returns."""
    assert name not in CASES, name
    CASES[name] = (build, arrays, shapes, tolerance)


IMAGE = floats(2, 7, 9, 4)
ODD = floats(1, 8, 5, 6)

# Activations and functions of one number.
for op in (
    "Abs Ceil Cos Cosh Elu Erf Erfc Exp Expm1 Floor IsFinite IsInf IsNan Neg Relu Relu6 Rint Round Selu Sigmoid "
    "Sign Sin Sinh Softplus Softsign Square Tan Tanh Atan Asinh"
).split():
    argument = {
        "Elu": "features",
        "Relu": "features",
        "Relu6": "features",
        "Selu": "features",
        "Softplus": "features",
        "Softsign": "features",
    }.get(op, "x")
    case(op, lambda x, op=op, argument=argument: getattr(raw, op)(**{argument: x}), 4 * floats(3, 5))
for op in "Log Log1p Rsqrt Sqrt Reciprocal Acosh".split():
    case(op, lambda x, op=op: getattr(raw, op)(x=x), floats(3, 5, low=1.1, high=4))
for op in "Acos Asin Atanh".split():
    case(op, lambda x, op=op: getattr(raw, op)(x=x), floats(3, 5, low=-0.9, high=0.9))
# Numbers that a composition of other operators loses, one output for each: the tolerance is relative to the largest.
for op, numbers in {
    "Log1p": (1e-8, -1e-8, 1e-4, -0.5, -0.999, 0.9, 7, 1e20),
    "Expm1": (1e-8, -1e-8, 1e-4, -0.5, -30, 0.9, 7, 80),
    "Erfc": (0.5, 2, 3, 5, 8, -0.5, -5),
    "Softplus": (-5, -20, -60, 0, 20, 80),
}.items():
    argument = "features" if op == "Softplus" else "x"
    case(
        f"{op}, digits",
        lambda x, op=op, argument=argument, count=len(numbers): tf.split(
            getattr(raw, op)(**{argument: x}), count
        ),
        np.array(numbers, np.float32),
        tolerance=1e-5,
    )
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0, 7, -7], np.float32)
for op in "Relu Relu6 Elu Selu Softplus".split():
    case(f"{op}, special numbers", lambda x, op=op: getattr(raw, op)(features=x), SPECIAL)
for op in "Log1p Expm1 Erfc Exp Sigmoid Tanh".split():
    case(f"{op}, special numbers", lambda x, op=op: getattr(raw, op)(x=x), SPECIAL)
case("LeakyRelu", lambda x: raw.LeakyRelu(features=x, alpha=0.3), floats(3, 5))
case("LeakyRelu default", lambda x: raw.LeakyRelu(features=x), floats(3, 5))
case("LogicalNot", lambda x: raw.LogicalNot(x=x), bools(3, 4))
case("Invert", lambda x: raw.Invert(x=x), ints(3, 4))
case("Neg int", lambda x: raw.Neg(x=x), ints(3, 4))
case("Square int", lambda x: raw.Square(x=x), ints(3, 4))
case("Abs int", lambda x: raw.Abs(x=x), ints(3, 4))
for to in (np.float32, np.int64, np.uint8, np.bool_, np.float16):
    case(f"Cast to {to.__name__}", lambda x, to=to: tf.cast(x, to), ints(3, 4, low=0))
case("Cast float to int", lambda x: tf.cast(x, tf.int32), 5 * floats(4, 4))

# Two operands.
for op in "Add AddV2 Sub Mul Maximum Minimum SquaredDifference Less LessEqual Greater GreaterEqual Equal NotEqual".split():
    case(op, lambda x, y, op=op: getattr(raw, op)(x=x, y=y), floats(2, 3, 4), floats(3, 1))
    case(
        f"{op} int",
        lambda x, y, op=op: getattr(raw, op)(x=x, y=y),
        ints(2, 3, 4, low=-2, high=3),
        ints(4, low=-2, high=3),
    )
for op in "RealDiv FloorDiv FloorMod DivNoNan Atan2 TruncateMod".split():
    case(op, lambda x, y, op=op: getattr(raw, op)(x=x, y=y), 5 * floats(6, 7), floats(6, 7))
for op in "FloorDiv FloorMod TruncateDiv TruncateMod Div".split():
    divisors = ints(6, 7, low=1, high=5) * np.where(bools(6, 7), 1, -1).astype(np.int32)
    case(f"{op} int", lambda x, y, op=op: getattr(raw, op)(x=x, y=y), ints(6, 7), divisors)
case("DivNoNan zero", lambda x, y: raw.DivNoNan(x=x, y=y), floats(4), np.array([0, 1, 0, 2], np.float32))
case(
    "MulNoNan",
    lambda x, y: raw.MulNoNan(x=x, y=y),
    np.array([np.inf, 1, 2], np.float32),
    np.array([0, 3, 4], np.float32),
)
case("Pow", lambda x, y: raw.Pow(x=x, y=y), floats(3, 4, low=0.1), floats(4))
for op in "LogicalAnd LogicalOr".split():
    case(op, lambda x, y, op=op: getattr(raw, op)(x=x, y=y), bools(3, 4), bools(4))
for op in "BitwiseAnd BitwiseOr BitwiseXor".split():
    case(op, lambda x, y, op=op: getattr(raw, op)(x=x, y=y), ints(3, 4), ints(3, 4))
case("AddN", lambda x, y, z: raw.AddN(inputs=[x, y, z]), floats(3, 4), floats(3, 4), floats(3, 4))
case("BiasAdd", lambda x, y: raw.BiasAdd(value=x, bias=y), floats(2, 3, 4), floats(4))
case(
    "BiasAdd NCHW",
    lambda x, y: raw.BiasAdd(value=x, bias=y, data_format="NCHW"),
    floats(2, 4, 3, 3),
    floats(4),
)
case("SelectV2", lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y), bools(3, 1), floats(3, 4), floats(4))
case("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), bools(3, 4), floats(3, 4), floats(3, 4))
case("Select rows", lambda c, x, y: raw.Select(condition=c, x=x, y=y), bools(3), floats(3, 4), floats(3, 4))
case(
    "Select scalar",
    lambda c, x, y: raw.Select(condition=c, x=x, y=y),
    np.array(True),
    floats(3, 4),
    floats(3, 4),
)
case("ClipByValue", lambda x: raw.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.7), floats(3, 4))

# Convolutions and pools.
for padding in ("SAME", "VALID"):
    for stride in (1, 2, 3):
        for kernel in ((1, 1), (3, 3), (2, 5)):
            weights = floats(*kernel, 4, 6)
            case(
                f"Conv2D {padding} stride {stride} kernel {kernel}",
                lambda x, w=weights, p=padding, s=stride: tf.nn.conv2d(x, w, s, p),
                IMAGE,
            )
    case(
        f"Conv2D {padding} dilated",
        lambda x, p=padding, w=floats(3, 3, 4, 5): tf.nn.conv2d(x, w, 1, p, dilations=2),
        IMAGE,
    )
    for stride in (1, 2):
        for multiplier in (1, 2):
            case(
                f"DepthwiseConv2dNative {padding} stride {stride} multiplier {multiplier}",
                lambda x, p=padding, s=stride, w=floats(3, 3, 4, multiplier): tf.nn.depthwise_conv2d(
                    x, w, [1, s, s, 1], p
                ),
                IMAGE,
            )
        case(
            f"MaxPool {padding} stride {stride}",
            lambda x, p=padding, s=stride: tf.nn.max_pool2d(x, 3, s, p),
            IMAGE,
        )
        case(
            f"AvgPool {padding} stride {stride}",
            lambda x, p=padding, s=stride: tf.nn.avg_pool2d(x, (3, 2), s, p),
            IMAGE,
        )
        case(
            f"Conv2DBackpropInput {padding} stride {stride}",
            lambda x, p=padding, s=stride, w=floats(3, 3, 5, 4): tf.nn.conv2d_transpose(
                x, w, [2, 7 * s if p == "SAME" else 6 * s + 3, 9 * s if p == "SAME" else 8 * s + 3, 5], s, p
            ),
            IMAGE,
        )
case(
    "Conv2D open size",
    lambda x, w=floats(3, 3, 4, 5): tf.nn.conv2d(x, w, 2, "SAME"),
    IMAGE,
    shapes=[[None, None, None, 4]],
)
case("MaxPool open size", lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), IMAGE, shapes=[[None, None, None, 4]])
case(
    "Conv2D explicit padding",
    lambda x, w=floats(3, 3, 4, 5): tf.nn.conv2d(x, w, 2, [[0, 0], [2, 1], [0, 3], [0, 0]]),
    IMAGE,
)
case("Conv2D groups", lambda x, w=floats(3, 3, 2, 6): tf.nn.conv2d(x, w, 1, "SAME"), IMAGE)
case("Conv2D weights as input", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), IMAGE, floats(3, 3, 4, 2))
case(
    "Conv3D",
    lambda x, w=floats(2, 3, 2, 3, 4): tf.nn.conv3d(x, w, [1, 1, 2, 1, 1], "SAME"),
    floats(1, 4, 6, 5, 3),
)
case("MaxPool3D", lambda x: tf.nn.max_pool3d(x, 2, 2, "VALID"), floats(1, 4, 6, 6, 3))
case(
    "Dilation by SpaceToBatchND",
    lambda x, w=floats(3, 3, 4, 5): tf.batch_to_space(
        tf.nn.conv2d(tf.space_to_batch(x, [2, 2], [[2, 3], [2, 3]]), w, 1, "VALID"), [2, 2], [[0, 1], [0, 1]]
    ),
    IMAGE,
)

# Normalization.
for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
    case(
        op,
        lambda x, op=op, g=floats(4), b=floats(4), m=floats(4), v=floats(4, low=0.5): getattr(raw, op)(
            x=x, scale=g, offset=b, mean=m, variance=v, epsilon=0.01, is_training=False
        )[0],
        IMAGE,
    )
case(
    "LRN", lambda x: tf.nn.local_response_normalization(x, depth_radius=2, bias=1.5, alpha=0.1, beta=0.7), ODD
)
case("Softmax", lambda x: tf.nn.softmax(x), floats(2, 3, 4))
case("LogSoftmax", lambda x: tf.nn.log_softmax(x), floats(3, 4))
case(
    "LayerNorm by moments",
    lambda x, g=floats(6), b=floats(6): tf.nn.batch_normalization(
        x, *tf.nn.moments(x, [-1], keepdims=True), b, g, 1e-5
    ),
    floats(2, 3, 6),
)
case("L2 normalize", lambda x: tf.nn.l2_normalize(x, axis=-1), floats(3, 6))

# Reductions.
for op in "Mean Sum Max Min Prod EuclideanNorm".split():
    for keep in (False, True):
        case(
            f"{op} {keep}",
            lambda x, op=op, k=keep: getattr(raw, op)(input=x, axis=[1, -1], keep_dims=k),
            floats(2, 3, 4),
        )
    case(f"{op} scalar axis", lambda x, op=op: getattr(raw, op)(input=x, axis=1), floats(2, 3, 4))
    case(
        f"{op} no axis", lambda x, op=op: getattr(raw, op)(input=x, axis=np.zeros(0, np.int32)), floats(2, 3)
    )
case("Sum int", lambda x: raw.Sum(input=x, axis=[0]), ints(3, 4))
case("Global mean", lambda x: raw.Mean(input=x, axis=[1, 2]), IMAGE)
for op in ("All", "Any"):
    case(op, lambda x, op=op: getattr(raw, op)(input=x, axis=[1]), bools(4, 3))
for op in ("ArgMax", "ArgMin"):
    case(op, lambda x, op=op: getattr(raw, op)(input=x, dimension=1), floats(3, 7))
    case(
        f"{op} int32",
        lambda x, op=op: getattr(raw, op)(input=x, dimension=-1, output_type=tf.int32),
        floats(2, 3, 7),
    )
case("TopKV2", lambda x: list(tf.nn.top_k(x, 3)), floats(4, 9))
case("Cumsum", lambda x: tf.cumsum(x, 1, exclusive=True), floats(3, 4))
case("Cumsum reverse", lambda x: tf.cumsum(x, 0, reverse=True), floats(3, 4))
case("Cumprod", lambda x: tf.math.cumprod(x, 1), floats(3, 4))

# Shapes.
case("Reshape", lambda x: tf.reshape(x, [4, -1]), floats(2, 3, 4))
case(
    "Reshape by shape",
    lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], -1])),
    IMAGE,
    shapes=[[None, 7, 9, 4]],
)
case("Reshape empty", lambda x: tf.reshape(x, [0, 5]), floats(3, 0))
case("Squeeze", lambda x: tf.squeeze(x), floats(1, 3, 1))
case("Squeeze axes", lambda x: tf.squeeze(x, [-1]), floats(1, 3, 1))
case("ExpandDims", lambda x: [tf.expand_dims(x, 1), tf.expand_dims(x, -1)], floats(2, 3))
case("Transpose", lambda x: tf.transpose(x, [2, 0, 1]), floats(2, 3, 4))
case("Shape", lambda x: [tf.shape(x), tf.shape(x, out_type=tf.int64)], floats(2, 3), shapes=[[None, 3]])
case("ShapeN", lambda x, y: tf.shape_n([x, y]), floats(2, 3), floats(4), shapes=[[None, 3], [None]])
case("Size", lambda x: tf.size(x), floats(2, 3), shapes=[[None, None]])
case("Rank", lambda x: tf.rank(x), floats(2, 3), shapes=[[None, None]])
case("Fill", lambda x: tf.fill(tf.shape(x), 2.5), floats(2, 3), shapes=[[None, None]])
case("ZerosLike", lambda x: [raw.ZerosLike(x=x), raw.OnesLike(x=x)], floats(2, 3), shapes=[[None, None]])
case("Range", lambda x: tf.range(0, tf.shape(x)[0], 2), floats(7), shapes=[[None]])
case("Range floats", lambda x: tf.range(x, 5.0, 0.5), np.float32(1.0))
case("Tile", lambda x: tf.tile(x, [2, 3]), floats(2, 3))
case("BroadcastTo", lambda x: tf.broadcast_to(x, [4, 2, 3]), floats(2, 1))
for axis in (0, 1, -1):
    case(f"Pack {axis}", lambda x, y, a=axis: tf.stack([x, y], a), floats(2, 3), floats(2, 3))
    case(f"Unpack {axis}", lambda x, a=axis: tf.unstack(x, axis=a), floats(2, 3, 4))
    case(f"ConcatV2 {axis}", lambda x, y, a=axis: tf.concat([x, y, x], a), floats(2, 3), floats(2, 3))
case("Concat", lambda x, y: raw.Concat(concat_dim=1, values=[x, y]), floats(2, 3), floats(2, 5))
case("Split", lambda x: tf.split(x, 3, 1), floats(2, 6))
case("SplitV", lambda x: tf.split(x, [1, -1, 2], 1), floats(2, 6))

# Places.
case("StridedSlice", lambda x: x[1:5:2, ::-1], floats(6, 4))
case("StridedSlice negative", lambda x: x[-3:-1, -2], floats(6, 4))
case("StridedSlice last", lambda x: x[-1], floats(6, 4))
case("StridedSlice ellipsis", lambda x: x[..., 1, 0:2], floats(2, 3, 4, 5))
case("StridedSlice new axes", lambda x: x[:, tf.newaxis, 1, ..., tf.newaxis], floats(2, 3, 4))
case("StridedSlice backwards", lambda x: x[4:1:-1, :2:-1], floats(6, 7))
case("StridedSlice of a shape", lambda x: tf.shape(x)[1:], floats(2, 3, 4), shapes=[[None, None, None]])
case("StridedSlice moving", lambda x, i: x[i, i:], floats(6, 4), np.int32(2))
case("Slice", lambda x: tf.slice(x, [1, 0], [3, -1]), floats(6, 4))
case("Slice moving", lambda x, i: tf.slice(x, tf.stack([i, 0]), [2, 3]), floats(6, 4), np.int32(3))
case("Pad", lambda x: tf.pad(x, [[1, 2], [0, 3]]), floats(2, 3))
case("PadV2", lambda x: tf.pad(x, [[1, 2], [0, 3]], constant_values=-1.5), floats(2, 3))
for mode in ("REFLECT", "SYMMETRIC"):
    case(f"MirrorPad {mode}", lambda x, m=mode: tf.pad(x, [[1, 2], [0, 3]], mode=m), floats(4, 5))
case("Gather", lambda x, i: raw.Gather(params=x, indices=i), floats(5, 3), ints(2, 2, low=0, high=5))
case("GatherV2", lambda x, i: tf.gather(x, i, axis=1), floats(2, 5, 3), ints(4, low=0, high=5))
case(
    "GatherV2 batch",
    lambda x, i: tf.gather(x, i, axis=1, batch_dims=1),
    floats(2, 5, 3),
    ints(2, 4, low=0, high=5),
)
case("GatherNd", lambda x, i: tf.gather_nd(x, i), floats(4, 5, 3), ints(6, 2, low=0, high=4))
case("ScatterNd", lambda i, x: tf.scatter_nd(i, x, [6, 3]), np.array([[1], [4], [1]], np.int32), floats(3, 3))
case("OneHot", lambda i: tf.one_hot(i, 5, on_value=2.0, off_value=-1.0), np.array([0, 4, -1, 7], np.int32))
case("OneHot axis", lambda i: tf.one_hot(i, 5, axis=0), np.array([0, 4, 2], np.int64))
case("Where", lambda x: tf.where(x), bools(4, 5))
case("ReverseV2", lambda x: tf.reverse(x, [0, 2]), floats(2, 3, 4))

# Blocks and sizes of images.
case("SpaceToDepth", lambda x: tf.nn.space_to_depth(x, 2), floats(1, 4, 6, 3))
case("DepthToSpace", lambda x: tf.nn.depth_to_space(x, 2), floats(1, 2, 3, 8))
case("SpaceToBatchND", lambda x: tf.space_to_batch(x, [2, 3], [[1, 0], [0, 0]]), floats(2, 5, 6, 3))
case("BatchToSpaceND", lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [1, 0]]), floats(8, 3, 4, 2))
for align, half in ((False, False), (True, False), (False, True)):
    for size in ([11, 13], [4, 5], [14, 18]):
        name = f"{'align' if align else 'half' if half else 'plain'} {size}"
        case(
            f"ResizeBilinear {name}",
            lambda x, s=size, a=align, h=half: raw.ResizeBilinear(
                images=x, size=s, align_corners=a, half_pixel_centers=h
            ),
            IMAGE,
        )
        case(
            f"ResizeNearestNeighbor {name}",
            lambda x, s=size, a=align, h=half: raw.ResizeNearestNeighbor(
                images=x, size=s, align_corners=a, half_pixel_centers=h
            ),
            IMAGE,
        )
case(
    "ResizeBilinear bytes",
    lambda x: raw.ResizeBilinear(images=x, size=[6, 5]),
    ints(1, 4, 4, 3, low=0, high=255, dtype=np.uint8),
)
case(
    "ResizeBilinear by shape",
    lambda x: raw.ResizeBilinear(images=x, size=2 * tf.shape(x)[1:3]),
    IMAGE,
    shapes=[[None, None, None, 4]],
)

# Products.
for a in (False, True):
    for b in (False, True):
        case(
            f"MatMul {a} {b}",
            lambda x, y, a=a, b=b: tf.matmul(x, y, transpose_a=a, transpose_b=b),
            floats(*((5, 3) if a else (3, 5))),
            floats(*((4, 5) if b else (5, 4))),
        )
        case(
            f"BatchMatMulV2 {a} {b}",
            lambda x, y, a=a, b=b: tf.matmul(x, y, adjoint_a=a, adjoint_b=b),
            floats(2, *((5, 3) if a else (3, 5))),
            floats(1, *((4, 5) if b else (5, 4))),
        )
case("BatchMatMul", lambda x, y: raw.BatchMatMul(x=x, y=y), floats(2, 3, 4), floats(2, 4, 5))
for equation, left, right in (
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("abc,cde->abde", (2, 3, 4), (4, 2, 5)),
    ("bfnh,btnh->bnft", (2, 3, 2, 4), (2, 5, 2, 4)),
    ("...x,xy->...y", (2, 3, 4), (4, 5)),
):
    case(f"Einsum {equation}", lambda x, y, e=equation: tf.einsum(e, x, y), floats(*left), floats(*right))

# Detection. Regions reach beyond the image, are turned around, or are a point.
REGIONS = np.array(
    [[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [-0.3, 0.2, 0.6, 1.4], [0.9, 0.8, 0.1, 0.2], [0.5, 0.5, 0.5, 0.5]],
    np.float32,
)
for name, crop in (("", [4, 3]), (" of one", [1, 1])):
    case(
        f"CropAndResize{name}",
        lambda x, boxes, images, crop=crop: raw.CropAndResize(
            image=x, boxes=boxes, box_ind=images, crop_size=crop, extrapolation_value=0.5
        ),
        floats(2, 6, 7, 3),
        REGIONS,
        np.array([0, 1, 1, 0, 1], np.int32),
        shapes=[[2, None, 7, 3], [None, 4], [None]],
    )
BOXES = np.sort(np.random.default_rng(4).uniform(0, 1, (40, 2, 2)), axis=1).reshape(40, 4).astype(np.float32)
SCORES = np.random.default_rng(5).permutation(40).astype(np.float32)
LIMITS = {"max_output_size": 9, "iou_threshold": 0.3}
case("NonMaxSuppression", lambda b, s: raw.NonMaxSuppression(boxes=b, scores=s, **LIMITS), BOXES, SCORES)
case("NonMaxSuppressionV2", lambda b, s: raw.NonMaxSuppressionV2(boxes=b, scores=s, **LIMITS), BOXES, SCORES)
ALL_LIMITS = {**LIMITS, "score_threshold": 25.0}
case(
    "NonMaxSuppressionV3",
    lambda b, s: raw.NonMaxSuppressionV3(boxes=b, scores=s, **ALL_LIMITS),
    BOXES,
    SCORES,
)
case(
    "NonMaxSuppressionV4",
    lambda b, s: list(raw.NonMaxSuppressionV4(boxes=b, scores=s, **ALL_LIMITS)),
    BOXES,
    SCORES,
)
case(
    "NonMaxSuppressionV5",
    lambda b, s: list(raw.NonMaxSuppressionV5(boxes=b, scores=s, soft_nms_sigma=0.0, **ALL_LIMITS)),
    BOXES,
    SCORES,
)

# Values passed on.
case("Identity", lambda x: [tf.identity(x), tf.stop_gradient(x)], floats(2, 3))
case("IdentityN", lambda x, y: tf.identity_n([x, y]), floats(2, 3), ints(4))
case("CheckNumerics", lambda x: raw.CheckNumerics(tensor=x, message="bad"), floats(2, 3))
case("Swish", lambda x: tf.nn.silu(x), floats(2, 3))
case("Gelu erf", lambda x: tf.nn.gelu(x, approximate=False), floats(4, 5))
case("Gelu tanh", lambda x: tf.nn.gelu(x, approximate=True), floats(4, 5))


@pytest.mark.parametrize("name", CASES)
def test_operator(name, tmp_path):
    build, arrays, shapes, tolerance = CASES[name]
    graph = tf.Graph()
    with graph.as_default():
        inputs = [
            tf.compat.v1.placeholder(array.dtype, np.shape(array) if shapes is None else shapes[i], f"x{i}")
            for i, array in enumerate(arrays)
        ]
        results = build(*inputs)
        results = list(results) if isinstance(results, list | tuple) else [results]
        outputs = [tf.identity(result, f"y{i}").name for i, result in enumerate(results)]
    feeds = {f"x{i}:0": array for i, array in enumerate(arrays)}
    model = check_graph(graph.as_graph_def(), feeds, outputs, tmp_path / "graph.pb", tolerance)
    assert "tensorflow." not in model.graph_text()


def test_old_batch_normalization(tmp_path):
    # TensorFlow dropped the operator long ago; graphs that have it are still around.
    arrays = {"mean": floats(4), "variance": floats(4, low=0.5), "beta": floats(4), "gamma": floats(4)}
    graph = tf.Graph()
    with graph.as_default():
        tf.compat.v1.placeholder(tf.float32, IMAGE.shape, "x")
        for name, array in arrays.items():
            tf.constant(array, name=name)
    definition = graph.as_graph_def()
    node = definition.node.add(name="y", op="BatchNormWithGlobalNormalization", input=["x", *arrays])
    node.attr["T"].type = tf.float32.as_datatype_enum
    node.attr["variance_epsilon"].f = 0.01
    node.attr["scale_after_normalization"].b = True
    found = kilter.load(write_graph(definition, tmp_path / "graph.pb")).run({"x": IMAGE})["y"]
    scaled = (IMAGE - arrays["mean"]) / np.sqrt(arrays["variance"] + 0.01)
    assert_close(found, scaled * arrays["gamma"] + arrays["beta"])
