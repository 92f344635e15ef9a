"""Single operators over their parameters: kilter computes what MXNet does, and knows them all."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import sym

import kilter
from conftest import relative

S = sym
IMAGE = (2, 4, 9, 8)
SEQUENCE = (5, 2, 24)  # length, batch, width


def conv(**settings):
    return lambda x: S.Convolution(x, S.var("w"), S.var("b"), kernel=(3, 3), num_filter=6, **settings)


def norm(**settings):
    return lambda x: S.BatchNorm(x, S.var("g"), S.var("b"), S.var("m"), S.var("v"), **settings)


def pool(**settings):
    return lambda x: S.Pooling(x, **settings)


def unary(name):
    return lambda x: getattr(S, name)(x)


# name: (symbol of x, shape of x, shapes of arrays)
CASES = {
    "convolution": (conv(), IMAGE, {"w": (6, 4, 3, 3), "b": (6,)}),
    "convolution, stride and pad": (
        conv(stride=(2, 1), pad=(1, 2), dilate=(1, 2)),
        IMAGE,
        {"w": (6, 4, 3, 3), "b": (6,)},
    ),
    "convolution, groups": (conv(num_group=2), IMAGE, {"w": (6, 2, 3, 3), "b": (6,)}),
    "convolution, one axis": (
        lambda x: S.Convolution(x, S.var("w"), kernel=(3,), num_filter=6, no_bias=True),
        (2, 4, 9),
        {"w": (6, 4, 3)},
    ),
    "deconvolution": (
        lambda x: S.Deconvolution(
            x, S.var("w"), kernel=(3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 1), num_filter=6
        ),
        IMAGE,
        {"w": (4, 6, 3, 3)},
    ),
    "batch norm, fixed scale": (norm(), IMAGE, {"g": (4,), "b": (4,), "m": (4,), "v": (4,)}),
    "batch norm": (norm(fix_gamma=False, eps=1e-5), IMAGE, {"g": (4,), "b": (4,), "m": (4,), "v": (4,)}),
    "batch norm, last axis": (
        norm(fix_gamma=False, axis=3),
        IMAGE,
        {"g": (8,), "b": (8,), "m": (8,), "v": (8,)},
    ),
    "layer norm": (lambda x: S.LayerNorm(x, S.var("g"), S.var("b")), SEQUENCE, {"g": (24,), "b": (24,)}),
    "instance norm": (lambda x: S.InstanceNorm(x, S.var("g"), S.var("b")), IMAGE, {"g": (4,), "b": (4,)}),
    "l2, instance": (lambda x: S.L2Normalization(x), IMAGE, {}),
    "l2, channel": (lambda x: S.L2Normalization(x, mode="channel"), IMAGE, {}),
    "l2, spatial": (lambda x: S.L2Normalization(x, mode="spatial"), IMAGE, {}),
    "lrn": (lambda x: S.LRN(x, nsize=3, alpha=0.1), IMAGE, {}),
    "max pool": (pool(kernel=(3, 3), stride=(2, 2), pad=(1, 1)), IMAGE, {}),
    "max pool, full": (pool(kernel=(3, 3), stride=(2, 2), pooling_convention="full"), IMAGE, {}),
    "average pool": (pool(kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg"), IMAGE, {}),
    "average pool, full": (
        pool(kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg", pooling_convention="full"),
        IMAGE,
        {},
    ),
    "average pool, without pad": (
        pool(kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg", count_include_pad=False),
        IMAGE,
        {},
    ),
    "average pool, windows behind the image": (
        pool(kernel=(2, 2), stride=(2, 2), pad=(1, 1), pool_type="avg", pooling_convention="full"),
        IMAGE,
        {},
    ),
    "max pool, windows behind the image": (
        lambda x: S.maximum(S.Pooling(x, (2, 2), stride=(2, 2), pad=(1, 1), pooling_convention="full"), -9),
        IMAGE,
        {},
    ),
    "sum pool": (pool(kernel=(2, 2), pool_type="sum"), IMAGE, {}),
    "global max pool": (pool(global_pool=True, kernel=(1, 1)), IMAGE, {}),
    "global average pool": (pool(global_pool=True, kernel=(1, 1), pool_type="avg"), IMAGE, {}),
    "fully connected": (
        lambda x: S.FullyConnected(x, S.var("w"), S.var("b"), num_hidden=5),
        IMAGE,
        {"w": (5, 288), "b": (5,)},
    ),
    "fully connected, rows": (
        lambda x: S.FullyConnected(x, S.var("w"), S.var("b"), num_hidden=5, flatten=False),
        SEQUENCE,
        {"w": (5, 24), "b": (5,)},
    ),
    "dot": (lambda x: S.dot(x, S.var("w"), transpose_b=True), (3, 4), {"w": (5, 4)}),
    "batch dot": (lambda x: S.batch_dot(x, x, transpose_b=True), SEQUENCE, {}),
    "embedding": (
        lambda x: S.Embedding(S.abs(x) * 5, S.var("w"), input_dim=9, output_dim=3),
        (4, 2),
        {"w": (9, 3)},
    ),
    "embedding, beyond the ends": (
        lambda x: S.Embedding(x * 20, S.var("w"), input_dim=9, output_dim=3),
        (4, 2),
        {"w": (9, 3)},
    ),
    "take": (lambda x: S.take(S.var("w"), x * 20), (4,), {"w": (9, 3)}),
    "one hot": (lambda x: S.one_hot(S.abs(x) * 5, 9), (4,), {}),
    "one hot, no class": (lambda x: S.one_hot(x * 9, 4, on_value=2, off_value=-1), (17,), {}),
    "self attention": (
        lambda x: S.contrib.interleaved_matmul_selfatt_valatt(
            x, S.softmax(S.contrib.interleaved_matmul_selfatt_qk(x, heads=2)), heads=2
        ),
        SEQUENCE,
        {},
    ),
    "cross attention": (
        lambda x: S.contrib.interleaved_matmul_encdec_valatt(
            S.var("w"), S.softmax(S.contrib.interleaved_matmul_encdec_qk(x, S.var("w"), heads=2)), heads=2
        ),
        SEQUENCE,
        {"w": (7, 2, 48)},
    ),
    "div sqrt dim": (lambda x: S.contrib.div_sqrt_dim(x), SEQUENCE, {}),
    "arange like": (lambda x: S.contrib.arange_like(x, axis=2), SEQUENCE, {}),
    "sequence mask": (
        lambda x: S.SequenceMask(x, S.var("n"), use_sequence_length=True, value=-1),
        SEQUENCE,
        {"n": (2,)},
    ),
    "prelu": (lambda x: S.LeakyReLU(x, S.var("g"), act_type="prelu"), IMAGE, {"g": (4,)}),
    "softmax, temperature": (lambda x: S.softmax(x, axis=1, temperature=2), IMAGE, {}),
    "softmax output": (lambda x: S.SoftmaxOutput(x, S.var("softmax_label")), (3, 5), {}),
    "concat": (lambda x: S.concat(x, x * 2, dim=2), IMAGE, {}),
    "stack": (lambda x: S.stack(x, -x, axis=1), IMAGE, {}),
    "split": (lambda x: S.split(x, 2, axis=1)[1], IMAGE, {}),
    "split, squeezed": (lambda x: S.split(x, 4, axis=1, squeeze_axis=True)[2], IMAGE, {}),
    "reshape": (lambda x: S.reshape(x, (0, -1)), IMAGE, {}),
    "reshape, rest": (lambda x: S.reshape(x, (-4, 1, 2, -2)), IMAGE, {}),
    "reshape, merged": (lambda x: S.reshape(x, (0, -3, 0)), IMAGE, {}),
    "reshape, split": (lambda x: S.reshape(x, (0, -4, 2, -1, 0, 0)), IMAGE, {}),
    "flatten": (unary("flatten"), IMAGE, {}),
    "expand dims": (lambda x: S.expand_dims(x, 1), IMAGE, {}),
    "squeeze": (lambda x: S.squeeze(S.expand_dims(x, 0), axis=0), IMAGE, {}),
    "squeeze, all": (lambda x: S.squeeze(x), (1, 1), {}),
    "transpose": (lambda x: S.transpose(x, (0, 3, 1, 2)), IMAGE, {}),
    "swap axes": (lambda x: S.swapaxes(x, 1, 3), IMAGE, {}),
    "slice": (lambda x: S.slice(x, (None, 1, 7), (2, None, 1), (1, 2, -2)), IMAGE, {}),
    "slice axis": (lambda x: S.slice_axis(x, axis=2, begin=1, end=-1), IMAGE, {}),
    "slice like": (lambda x: S.slice_like(x, S.var("w"), axes=(2, 3)), IMAGE, {"w": (1, 1, 3, 4)}),
    "tile": (lambda x: S.tile(x, (2, 1, 3)), SEQUENCE, {}),
    "repeat": (lambda x: S.repeat(x, 2, axis=1), SEQUENCE, {}),
    "broadcast axis": (lambda x: S.broadcast_axis(S.mean(x, axis=1, keepdims=True), 1, 3), IMAGE, {}),
    "broadcast to": (lambda x: S.broadcast_to(S.mean(x, axis=1, keepdims=True), (0, 3, 0, 0)), IMAGE, {}),
    "broadcast like": (lambda x: S.broadcast_like(S.mean(x, axis=1, keepdims=True), x), IMAGE, {}),
    "pad": (lambda x: S.pad(x, "constant", (0, 0, 0, 0, 1, 2, 3, 0), 0.5), IMAGE, {}),
    "pad, edge": (lambda x: S.pad(x, "edge", (0, 0, 0, 0, 1, 2, 3, 0)), IMAGE, {}),
    "mean": (lambda x: S.mean(x, axis=(2, 3)), IMAGE, {}),
    "mean, others": (lambda x: S.mean(x, axis=1, exclude=True), IMAGE, {}),
    "sum of all": (unary("sum"), IMAGE, {}),
    "mean of all, by name": (lambda x: S.mean(x, axis=(0, 1, 2, 3)), IMAGE, {}),
    "sum of a vector": (lambda x: S.sum(x, axis=0), (5,), {}),
    "max": (lambda x: S.max(x, axis=1, keepdims=True), IMAGE, {}),
    "norm": (lambda x: S.norm(x, axis=1), IMAGE, {}),
    "argmax": (lambda x: S.argmax(x, axis=1), IMAGE, {}),
    "argmax of a vector": (lambda x: S.argmax(x, axis=0), (5,), {}),
    "topk": (lambda x: S.topk(x, k=3, ret_typ="value"), (4, 9), {}),
    "topk, all": (lambda x: S.topk(x, k=0, axis=0, is_ascend=True), (4, 9), {}),
    "topk, flattened": (lambda x: S.topk(x, k=7, axis=None), (4, 9), {}),
    "where": (lambda x: S.where(x > 0, x, x * 0.1), IMAGE, {}),
    "where, rows": (lambda x: S.where(S.var("w") > 0, x, x * 0.1), (4, 4), {"w": (4,)}),
    "comparison": (lambda x: (x > 0.1) + (x <= 0.5) + (x != 0), IMAGE, {}),
    "numbers": (lambda x: 1 - 2 / (x * x + 3) + x / 4 - 0.5, IMAGE, {}),
    "clip": (lambda x: S.clip(x, -0.2, 0.6), IMAGE, {}),
    "smooth l1": (lambda x: S.smooth_l1(x * 3, scalar=2), IMAGE, {}),
    "sum of several": (lambda x: S.add_n(x, x, x), IMAGE, {}),
    "up-sampling": (lambda x: S.UpSampling(x, scale=2, sample_type="nearest"), IMAGE, {}),
    "bilinear resize": (lambda x: S.contrib.BilinearResize2D(x, height=13, width=5), IMAGE, {}),
    "bilinear resize, half pixels": (
        lambda x: S.contrib.BilinearResize2D(x, height=13, width=1, align_corners=False),
        IMAGE,
        {},
    ),
    "bilinear resize, factors": (
        lambda x: S.contrib.BilinearResize2D(
            x, scale_height=1.5, scale_width=0.7, align_corners=False, mode="size"
        ),
        IMAGE,
        {},
    ),
    "rint, half-way": (lambda x: S.rint(S.floor(x * 6) / 2), IMAGE, {}),
    "round, half-way": (lambda x: S.round(S.floor(x * 6) / 2), IMAGE, {}),
    "adaptive pool": (lambda x: S.contrib.AdaptiveAvgPooling2D(x, output_size=1), IMAGE, {}),
    "depth to space": (lambda x: S.depth_to_space(x, 2), (2, 8, 3, 3), {}),
    "ones like": (unary("ones_like"), IMAGE, {}),
    "cast": (lambda x: S.Cast(S.Cast(x * 9, "int32"), "float32"), IMAGE, {}),
}
for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
    CASES[f"activation {kind}"] = (lambda x, kind=kind: S.Activation(x, kind), IMAGE, {})
for kind in ("leaky", "elu", "selu", "gelu"):
    CASES[f"leaky {kind}"] = (lambda x, kind=kind: S.LeakyReLU(x, act_type=kind), IMAGE, {})
for name in "relu sigmoid softsign tanh exp square abs sign negative erf sin cos floor ceil rint".split():
    CASES[name] = (unary(name), IMAGE, {})
for name in "log sqrt rsqrt reciprocal".split():
    CASES[name] = (lambda x, name=name: getattr(S, name)(S.abs(x) + 0.5), IMAGE, {})
for name in "add sub mul div maximum minimum equal greater lesser_equal".split():
    CASES[f"broadcast_{name}"] = (
        lambda x, name=name: getattr(S, f"broadcast_{name}")(x, S.var("w")),
        IMAGE,
        {"w": (1, 4, 1, 1)},
    )


def values(name, shape, random):
    if name == "n":
        return np.array([2, 4], np.float32)
    array = random.uniform(-1, 1, shape).astype(np.float32)
    return np.abs(array) + 0.5 if name == "v" else array


@pytest.mark.parametrize("case", CASES)
def test_operator(case, tmp_path):
    build, shape, arrays = CASES[case]
    random = np.random.default_rng(5)
    symbol = build(S.var("data"))
    data = values("data", shape, random)
    held = {name: values(name, size, random) for name, size in arrays.items()}
    auxiliary = set(symbol.list_auxiliary_states())
    mx.model.save_checkpoint(
        str(tmp_path / "op"),
        0,
        symbol,
        {name: mx.nd.array(array) for name, array in held.items() if name not in auxiliary},
        {name: mx.nd.array(array) for name, array in held.items() if name in auxiliary},
    )
    arguments = {name: mx.nd.array(array) for name, array in held.items() if name not in auxiliary}
    if "softmax_label" in symbol.list_arguments():
        arguments["softmax_label"] = mx.nd.zeros((shape[0],))
    bound = symbol.bind(
        mx.cpu(),
        arguments | {"data": mx.nd.array(data)},
        aux_states={name: mx.nd.array(held[name]) for name in auxiliary},
    )
    expected = bound.forward(is_train=False)[0].asnumpy()
    found = kilter.load(tmp_path / "op", shapes={"data": shape})(data)
    assert found.shape == expected.shape
    assert relative(found, expected) < 1e-4


def test_rows_are_chosen_when_only_a_run_tells_the_ranks(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    symbol = S.where(S.var("condition"), S.var("data"), -S.var("data"))
    mx.model.save_checkpoint(str(tmp_path / "op"), 0, symbol, {}, {})
    model = kilter.load(tmp_path / "op")
    for condition in (np.float32([1, 0]), np.float32([[1, 0, 1], [0, 0, 1]])):
        expected = mx.nd.where(mx.nd.array(condition), mx.nd.array(x), mx.nd.array(-x)).asnumpy()
        (found,) = model.run({"condition": condition, "data": x}).values()
        assert np.array_equal(found, expected)
