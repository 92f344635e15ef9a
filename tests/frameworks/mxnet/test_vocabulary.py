"""MXNet's words for quantization: kilter.mxnet.quantize_net and quantize_model against MXNet's own functions."""

import mxnet as mx
import numpy as np
import pytest
from mxnet.contrib import quantization
from mxnet.gluon import nn

import kilter
from conftest import exported, relative
from kilter import _kilter
from kilter.frameworks.mxnet_names import members, operators_named
from kilter.frameworks.mxnet_quantization import entropy_ranges, naive_ranges


@pytest.fixture(scope="module")
def block():
    mx.random.seed(3)
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(8, 3, padding=1),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.Conv2D(8, 3, padding=1, activation="relu"),
        nn.MaxPool2D(),
        nn.Conv2D(16, 3),
        nn.Flatten(),
        nn.Dense(32, activation="relu"),
        nn.Dense(4),
    )
    net.initialize(mx.init.Xavier(magnitude=3))
    net(mx.nd.zeros((1, 3, 16, 16)))
    return net


@pytest.fixture(scope="module")
def samples():
    random = np.random.default_rng(4)
    # Later batches are wider than the first: histograms grow.
    return [
        mx.nd.array(random.standard_normal((8, 3, 16, 16)) * scale, dtype="float32")
        for scale in (1.0, 0.7, 1.6, 1.2)
    ]


@pytest.fixture(scope="module")
def checkpoint(block, samples, tmp_path_factory):
    prefix = tmp_path_factory.mktemp("checkpoint") / "net"
    exported(block, prefix, samples[0])
    return str(prefix)


@pytest.fixture(scope="module")
def histograms(checkpoint, samples):
    """What MXNet's own collector gathers of every operator."""
    symbol, arguments, states = mx.model.load_checkpoint(checkpoint, 0)
    names = [name for name in symbol.get_internals().list_outputs() if name.endswith("_output")]
    module = mx.mod.Module(symbol, data_names=["data"], label_names=None)
    module.bind(for_training=False, data_shapes=[("data", samples[0].shape)])
    module.set_params(arguments, states)
    collector = quantization._LayerHistogramCollector(include_layer=names)
    iterator = mx.io.NDArrayIter(mx.nd.concat(*samples, dim=0), None, samples[0].shape[0])
    quantization._collect_layer_statistics(module, iterator, collector)
    return collector.hist_dict


def test_naive_ranges_are_those_of_mxnet(block, samples, histograms):
    found = naive_ranges(kilter.calibrate(block, samples))
    compared = [name for name in found if name in histograms]
    assert len(compared) >= 6
    for name in compared:
        low, high = histograms[name][2:4]
        assert found[name] == pytest.approx((low, high), rel=1e-4, abs=1e-5), name


@pytest.mark.parametrize("dtype", ["auto", "int8"])
def test_entropy_thresholds_are_those_of_mxnet(dtype, checkpoint, samples, histograms):
    found = entropy_ranges(checkpoint, samples, histograms, dtype)
    expected = quantization._get_optimal_thresholds(dict(histograms), dtype)
    assert set(found) == set(expected)
    pairs = [
        (found[name][1], float(np.asarray(high).ravel()[0]), float(np.asarray(low).ravel()[0]))
        for name, (low, high) in expected.items()
    ]
    for name, (_, high, low) in zip(expected, pairs, strict=True):
        assert found[name] == pytest.approx((low, high), rel=0.02, abs=1e-7), name
    check_equal_but_for_rounding([(ours, theirs) for ours, theirs, _ in pairs])


def check_equal_but_for_rounding(pairs):
    """MXNet sums in single precision: where the divergence hardly changes it may stop some bins away."""
    assert all(ours == pytest.approx(theirs, rel=0.02) for ours, theirs in pairs)
    equal = [ours == pytest.approx(theirs, rel=1e-5) for ours, theirs in pairs]
    assert sum(equal) >= 0.6 * len(pairs), pairs


def test_the_search_for_a_threshold_is_the_same_on_any_histogram():
    random = np.random.default_rng(5)
    pairs = []
    for scale in (0.1, 3.0):
        for values in (
            random.standard_normal(200000),
            random.laplace(size=200000),
            np.abs(random.standard_t(4, 200000)),
        ):
            values = (values * scale).astype(np.float32)
            reach = float(np.abs(values).max())
            counts, edges = np.histogram(values, 8001, (-reach, reach))
            unsigned = bool(values.min() >= 0)
            theirs, _ = mx.nd.contrib.calibrate_entropy(
                hist=mx.nd.array(counts),
                hist_edges=mx.nd.array(edges),
                num_quantized_bins=511 if unsigned else 255,
            )
            ours = _kilter.entropy_threshold(counts.astype(float).tolist(), 2 * reach / 8001, unsigned)
            pairs.append((ours, float(theirs.asnumpy().ravel()[0])))
    check_equal_but_for_rounding(pairs)


def fractions(model, samples, block):
    return [relative(model(x).asnumpy(), block(x).asnumpy()) for x in samples]


@pytest.mark.parametrize("mode", ["full", "smart"])
@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
@pytest.mark.parametrize("dtype", ["auto", "int8", "uint8"])
def test_all_words_together(mode, granularity, dtype, block, samples):
    loader = mx.gluon.data.DataLoader(
        mx.gluon.data.ArrayDataset(np.concatenate([x.asnumpy() for x in samples]), np.zeros(32)), 8
    )
    small = kilter.mxnet.quantize_net(
        block,
        quantized_dtype=dtype,
        quantize_mode=mode,
        quantize_granularity=granularity,
        calib_data=loader,
        calib_mode="naive",
    )
    assert max(fractions(small, samples, block)) < 0.1
    plan = small.plan
    assert plan["mode"] == mode
    dense = [
        entry["weights"]["granularity"]
        for entry in plan["operators"]
        if "dense" in entry["name"] and "granularity" in entry.get("weights", {})
    ]
    assert set(dense) == {"per-tensor" if granularity == "tensor-wise" else "per-channel"}
    convolutions = {entry["weights"]["granularity"] for entry in plan["operators"] if entry["op"] == "Conv"}
    assert convolutions == {"per-channel"}
    for value in small.report.ranges:
        if dtype == "int8":
            assert value.min == pytest.approx(-value.max), value
        if dtype == "auto" and value.min < 0:
            assert value.min == pytest.approx(-value.max), value


def test_what_is_excluded_stays_in_floating_point(block, checkpoint, samples):
    symbol = mx.sym.load(f"{checkpoint}-symbol.json")
    fused = members(symbol)
    first = next(name for name in fused if name.startswith("sg_mkldnn_conv_bn_act"))
    convolution = fused[first][0]

    def floats(**words):
        small = kilter.mxnet.quantize_net(block, calib_data=samples, **words)
        return {entry["name"] for entry in small.plan["operators"] if entry["precision"] != "int8"}

    assert floats() == set()
    assert convolution in floats(exclude_layers=[first])
    assert convolution in floats(exclude_layers=[first.replace("mkldnn", "onednn")])
    assert floats(exclude_layers=["nothing has this name"]) == set()
    assert len(floats(exclude_layers_match=["dense"])) >= 2
    assert len(floats(exclude_operators=["Convolution"])) >= 3
    assert operators_named(symbol, [convolution]) == [convolution]


def test_reports_have_the_names_of_mxnet(block, checkpoint, samples):
    small = kilter.quantize(block, samples, exclude="type:Conv")
    convolutions = [entry["name"] for entry in small.plan["operators"] if entry["op"] == "Conv"]
    fused = small.excluded_symbols(convolutions)
    assert fused[0].startswith("sg_mkldnn_conv_bn_act_") and len(fused) == 3


def test_quantize_model_has_the_defaults_of_mxnet(block, checkpoint, samples):
    symbol, arguments, states = mx.model.load_checkpoint(checkpoint, 0)
    iterator = mx.io.NDArrayIter(mx.nd.concat(*samples, dim=0), None, 8)
    small = kilter.mxnet.quantize_model(symbol, arguments, states, calib_data=iterator, num_calib_examples=24)
    assert max(fractions(small, samples, block)) < 0.3  # entropy leaves out what is rare
    assert all(value.min == pytest.approx(-value.max) for value in small.report.ranges)


def test_wrong_words_are_named(block, samples):
    for words, text in (
        ({"calib_mode": "none"}, "before it runs"),
        ({"quantized_dtype": "int4"}, "auto or int8 or uint8"),
        ({"quantize_mode": "fast"}, "full or smart"),
        ({"quantize_granularity": "layer-wise"}, "tensor-wise or channel-wise"),
    ):
        with pytest.raises(kilter.Error, match=text):
            kilter.mxnet.quantize_net(block, calib_data=samples, **words)
    with pytest.raises(kilter.Error, match="needs calib_data"):
        kilter.mxnet.quantize_net(block)
