// INT8 GraphDefs: which operators are written for which pattern, and the numbers in them. That stock TensorFlow runs them is
// shown by tests/frameworks/tensorflow.
#include "deploy/tensorflow/integer_graph.h"

#include <gtest/gtest.h>

#include "deploy/tensorflow/calibration_log.h"
#include "deploy/tensorflow/integer_values.h"
#include "formats/tensorflow/rewrites/rewrites.h"
#include "kilter/base/error.h"

namespace kilter::tensorflow {
namespace {

class Network {
  public:
    TfGraph graph;

    Network() {
        TfNode& x = graph.add("x", "Placeholder");
        x.attributes.set("dtype", kFloat);
        x.attributes.set("shape", TfShape({-1, 8, 8, 4}));
    }

    // A convolution with four channels in and out, and a bias.
    std::string conv(const std::string& name, const std::string& input, int64_t kernel = 1) {
        const Shape shape{kernel, kernel, 4, 4};
        std::vector<float> weights(static_cast<size_t>(element_count(shape)));
        for (size_t i = 0; i < weights.size(); ++i)
            weights[i] = 0.01F * static_cast<float>((i * 37) % 23) - 0.1F;
        graph.add_constant(name + "/w", Tensor::of<float>(shape, weights));
        graph.add_constant(name + "/b", Tensor::of<float>({4}, {1, 2, 3, 4}));
        TfNode& node = typed(name + "/conv", "Conv2D", {TfInput(input), TfInput::of(name + "/w")});
        TfList ones;
        ones.ints = {1, 1, 1, 1};
        node.attributes.set("strides", ones);
        node.attributes.set("padding", "SAME");
        typed(name, "BiasAdd", {TfInput::of(name + "/conv"), TfInput::of(name + "/b")});
        return name;
    }

    TfNode& typed(const std::string& name, const std::string& op, std::vector<TfInput> inputs) {
        TfNode& node = graph.add(name, op, std::move(inputs));
        node.attributes.set("T", kFloat);
        return node;
    }

    std::string unary(const std::string& name, const std::string& op, const std::string& input) {
        typed(name, op, {TfInput(input)});
        return name;
    }

    std::string pool(const std::string& name, const std::string& input) {
        TfNode& node = typed(name, "MaxPool", {TfInput(input)});
        TfList window;
        window.ints = {1, 2, 2, 1};
        node.attributes.set("ksize", window);
        node.attributes.set("strides", window);
        node.attributes.set("padding", "VALID");
        return name;
    }

    // Ranges for everything that is asked for: [-1, 2], or [0, 2] behind a Relu.
    IntegerReport write(const std::vector<std::string>& outputs, IslandOptions options = {}) {
        options.inputs = {"x"};
        options.outputs = outputs;
        for (const std::string& tensor : tensors_to_observe(find_islands(graph, options)))
            if (!ranges.contains(tensor))
                ranges[tensor] = {graph.find(tensor)->op.starts_with("Relu") ? 0.0 : -1.0, 2.0};
        return write_integer_graph(graph, options, ranges);
    }

    Ranges ranges;
    size_t count(const std::string& op) const {
        return static_cast<size_t>(
            std::ranges::count_if(graph.nodes(), [&](const auto& node) { return node->op == op; }));
    }
    const TfNode& only(const std::string& op) const {
        EXPECT_EQ(count(op), 1U) << op;
        for (const auto& node : graph.nodes())
            if (node->op == op) return *node;
        throw Error("no " + op);
    }
    double scalar(const TfInput& input) const { return constant_of(graph, input)->to_doubles()[0]; }
};

using Words = std::vector<std::string>;

TEST(IntegerGraph, ChainsStayOnIntegers) {
    Network net;
    net.unary("r1", "Relu", net.conv("c1", "x", 3));
    net.unary("r2", "Relu6", net.conv("c2", net.pool("pool", "r1"), 3));
    net.unary("y", "Softmax", "r2");
    const IntegerReport report = net.write({"y"});
    EXPECT_EQ(net.count("_FusedQuantizedConv2D"), 2U);
    EXPECT_EQ(net.count("QuantizedMaxPool"), 1U);
    EXPECT_EQ(net.count("QuantizeV2"), 1U);
    EXPECT_EQ(net.count("Requantize"), 0U);
    EXPECT_EQ(report.quantize, 1U);
    EXPECT_EQ(report.dequantize, 1U);
    const TfNode& first = *net.graph.find("c1/conv/int8");
    EXPECT_EQ(first.attributes.get_strings("fused_ops"), (Words{"BiasAdd", "Relu", "Requantize"}));
    EXPECT_EQ(first.attributes.get_type("Tinput"), kQint8);  // the image is signed, and padded with zeros
    EXPECT_EQ(first.attributes.get_type("out_type"), kQuint8);
    EXPECT_NEAR(net.scalar(first.inputs[8]), 2.0, 1e-6);
    // Nobody wants the last one in 8 bits: it comes in floats, and clips at six there.
    EXPECT_EQ(net.graph.find("r2")->op, "Relu6");
    EXPECT_EQ(net.graph.find("c2/conv/int32")->attributes.get_strings("fused_ops"),
              (Words{"BiasAdd", "Relu"}));
}

TEST(IntegerGraph, WeightsAreRoundedHalfToEvenPerChannel) {
    Network net;
    net.conv("c", "x");
    net.graph.find("c/w")->attributes.set(
        "value", TfTensor(Tensor::of<float>({1, 1, 4, 4},
                                            {127, 1, 0, 4, 0.5, 0, 0, 2, 1.5, 0, 0, 1, -2.5, 0, 0, -4})));
    net.unary("y", "Softmax", "c");
    net.write({"y"});
    const TfNode& conv = net.only("_FusedQuantizedConv2D");
    const Tensor bytes = *constant_of(net.graph, conv.inputs[1]);
    EXPECT_EQ(bytes.to_ints(),
              (std::vector<int64_t>{127, 127, 0, 127, 0, 0, 0, 64, 2, 0, 0, 32, -2, 0, 0, -127}));
    EXPECT_EQ(constant_of(net.graph, conv.inputs[6])->to_doubles(), (std::vector<double>{127, 1, 1, 4}));
}

TEST(IntegerGraph, SignedSummandsAreStoredWithAnOffset) {
    Network net;
    net.conv("shortcut", "x");
    net.conv("main", "x");
    net.typed("sum", "AddV2", {"main", "shortcut"});
    net.unary("relu", "Relu", "sum");
    net.unary("y", "Softmax", net.conv("next", "relu"));
    net.ranges = {{"x", {0, 2}}};
    net.write({"y"});
    size_t sums = 0;
    for (const auto& node : net.graph.nodes()) {
        const Words ops = node->attributes.get_strings("fused_ops");
        if (std::ranges::find(ops, "Sum") == ops.end()) continue;
        ++sums;
        EXPECT_EQ(ops, (Words{"BiasAdd", "Sum", "Relu", "Requantize"}));
        EXPECT_EQ(node->attributes.get_type("Tsummand"), kQuint8);
        EXPECT_EQ(node->attributes.get_type("out_type"), kQuint8);
        // [-1, 2] in 256 steps: zero is step 85, and the bias takes it out again.
        const double offset = 85 * (3.0 / 255);
        const TfNode& summand = *net.graph.find(node->inputs[3].node);
        EXPECT_NEAR(net.scalar(summand.inputs[8]), 3.0, 1e-5);
        const std::vector<double> added = constant_of(net.graph, summand.inputs[2])->to_doubles();
        const std::vector<double> taken = constant_of(net.graph, node->inputs[2])->to_doubles();
        for (size_t c = 0; c < 4; ++c) {
            EXPECT_NEAR(added[c], static_cast<double>(c + 1) + offset, 1e-5);
            EXPECT_NEAR(taken[c], static_cast<double>(c + 1) - offset, 1e-5);
        }
    }
    EXPECT_EQ(sums, 1U);
    EXPECT_EQ(net.count("AddV2"), 0U);
}

TEST(IntegerGraph, SignedFloatsGetAnOffsetUnlessTheyArePadded) {
    for (const int64_t kernel : {1, 3}) {
        SCOPED_TRACE(kernel);
        Network net;
        net.unary("y", "Softmax", net.conv("c", "x", kernel));
        net.write({"y"});
        const TfNode& quantize = net.only("QuantizeV2");
        const bool offset = kernel == 1;
        EXPECT_EQ(quantize.attributes.get_string("mode"), offset ? "MIN_FIRST" : "SCALED");
        EXPECT_EQ(quantize.attributes.get_type("T"), offset ? kQuint8 : kQint8);
        EXPECT_NEAR(net.scalar(quantize.inputs[1]), offset ? -1.0 : -2.0, 1e-6);
        EXPECT_NEAR(net.scalar(quantize.inputs[2]), 2.0, 1e-6);
        // The convolution sees bytes that begin at zero, and takes the offset out in its bias.
        const TfNode& conv = net.only("_FusedQuantizedConv2D");
        EXPECT_NEAR(net.scalar(conv.inputs[3]), offset ? 0.0 : -2.0, 1e-6);
        EXPECT_NEAR(net.scalar(conv.inputs[4]), offset ? 3.0 : 2.0, 1e-6);
    }
}

TEST(IntegerGraph, ResidualsWithoutReluStayOnIntegersBetweenPointwiseConvolutions) {
    Network net;
    net.conv("a", "x");
    net.conv("b", "a");
    net.typed("sum", "Add", {"a", "b"});
    net.conv("c", "sum");
    net.unary("y", "Softmax", "c");
    net.write({"y"});
    EXPECT_EQ(net.count("Add"), 0U);
    EXPECT_EQ(net.count("Dequantize"), 0U);
    EXPECT_EQ(net.count("QuantizeV2"), 1U);
}

TEST(IntegerGraph, SignedSumsBeforePaddingStayInFloats) {
    Network net;
    net.conv("a", "x");
    net.conv("b", "a");
    net.typed("sum", "Add", {"a", "b"});
    net.conv("c", "sum", 3);  // zeros around an image with an offset would not be zero
    net.unary("y", "Softmax", "c");
    const IntegerReport report = net.write({"y"});
    EXPECT_EQ(net.count("Add"), 1U);
    EXPECT_TRUE(std::ranges::any_of(report.operators,
                                    [](const auto& entry) { return entry.name == "sum" && !entry.integer; }));
}

TEST(IntegerGraph, SumsOfOtherShapesAreNotFused) {
    Network net;
    net.conv("a", "x");
    net.typed("mean", "Mean", {"x", "axes"});
    net.graph.add_constant("axes", Tensor::of<int32_t>({2}, {1, 2}));
    net.typed("sum", "AddV2", {"a", "mean"});
    net.unary("y", "Relu", "sum");
    net.write({"y"});
    EXPECT_EQ(net.count("AddV2"), 1U);
}

TEST(IntegerGraph, ConcatenatedTensorsShareTheWidestRange) {
    Network net;
    net.unary("r1", "Relu", net.conv("c1", "x", 3));
    net.unary("r2", "Relu", net.conv("c2", "x", 3));
    net.graph.add_constant("axis", Tensor::scalar<int32_t>(3));
    TfNode& concat = net.typed("cat", "ConcatV2", {"r1", "r2", "axis"});
    concat.attributes.set("N", int64_t{2});
    concat.attributes.set("Tidx", kInt32);
    net.graph.add_constant("w", Tensor::filled(DType::f32, {1, 1, 8, 4}, 0.5));
    TfNode& last = net.typed("last", "Conv2D", {"cat", "w"});
    TfList ones;
    ones.ints = {1, 1, 1, 1};
    last.attributes.set("strides", ones);
    last.attributes.set("padding", "VALID");
    net.unary("y", "Softmax", "last");
    net.ranges = {{"r1", {0, 1}}, {"r2", {0, 5}}};
    net.write({"y"});
    EXPECT_EQ(net.count("QuantizedConcatV2"), 1U);
    for (const char* name : {"c1/conv/int8", "c2/conv/int8"})
        EXPECT_NEAR(net.scalar(net.graph.find(name)->inputs[8]), 5.0, 1e-6);
}

TEST(IntegerGraph, MatrixProductsGiveFloatsOrBytes) {
    Network net;
    net.graph.add("features", "Placeholder").attributes.set("dtype", kFloat);
    net.graph.add_constant("w1", Tensor::filled(DType::f32, {3, 5}, 0.5));
    net.graph.add_constant("w2", Tensor::filled(DType::f32, {2, 5}, 0.5));
    net.typed("p1", "MatMul", {"features", "w1"});
    net.unary("hidden", "Tanh", "p1");
    net.typed("p2", "MatMul", {"hidden", "w2"}).attributes.set("transpose_b", true);
    net.unary("y", "Softmax", "p2");
    net.write({"y"});
    EXPECT_EQ(net.graph.find("p1/int8")->attributes.get_strings("fused_ops"),
              (Words{"BiasAdd", "Tanh", "Requantize"}));
    EXPECT_EQ(net.graph.find("p1/int8")->attributes.get_type("Tout"), kQint8)
        << "no offset goes through a Tanh";
    const TfNode& last = *net.graph.find("p2");
    EXPECT_EQ(last.op, "_QuantizedMatMul");
    EXPECT_EQ(last.attributes.get_strings("fused_ops"), (Words{"BiasAdd", "Dequantize"}));
    EXPECT_EQ(constant_of(net.graph, last.inputs[1])->shape(), (Shape{5, 2}));
}

TEST(IntegerGraph, ExcludedNodesAndOperatorsStayAsTheyAre) {
    Network net;
    net.unary("r1", "Relu", net.conv("c1", "x"));
    net.unary("y", "Softmax", net.conv("c2", "r1"));
    const IntegerReport report = net.write({"y"}, {.excluded_nodes = {"c2/conv"}});
    EXPECT_EQ(net.graph.find("c2/conv")->op, "Conv2D");
    EXPECT_EQ(net.count("_FusedQuantizedConv2D"), 1U);
    EXPECT_TRUE(std::ranges::any_of(report.operators, [](const auto& entry) {
        return entry.name == "c2/conv" && !entry.integer && entry.note == "excluded";
    }));
}

TEST(IntegerGraph, MissingAndEndlessRangesAreErrors) {
    Network net;
    net.unary("y", "Softmax", net.conv("c", "x"));
    const IslandOptions options{.inputs = {"x"}, .outputs = {"y"}};
    for (const Ranges& ranges : {Ranges{}, Ranges{{"x", {0, INFINITY}}}, Ranges{{"x", {0, NAN}}}}) {
        TfGraph copy = net.graph;
        EXPECT_THROW(write_integer_graph(copy, options, ranges), Error);
    }
}

TEST(FuseQuantizedConvAndRequantize, MakesSignedSummandsUnsigned) {
    // The older names, as other tools write them.
    TfGraph graph;
    graph.add("q", "Placeholder").attributes.set("dtype", kQuint8);
    graph.add_constant("w", TfTensor(Tensor::filled(DType::i8, {1, 1, 4, 4}, 3), kQint8));
    graph.add_constant("b", Tensor::of<float>({4}, {1, 2, 3, 4}));
    graph.add_constant("low", Tensor::scalar<float>(-1.0F));
    graph.add_constant("high", Tensor::scalar<float>(1.0F));
    const auto conv = [&](const std::string& name, const std::string& op) -> TfNode& {
        TfNode& node = graph.add(name, op, {"q", "w", "b", "low", "high", "low", "high"});
        node.attributes.set("Tinput", kQuint8);
        node.attributes.set("Tfilter", kQint8);
        node.attributes.set("out_type", kQint32);
        node.attributes.set("padding", "VALID");
        return node;
    };
    const auto requantize = [&](const std::string& name, const std::string& input, TfType type) {
        TfNode& node =
            graph.add(name, "Requantize",
                      {TfInput::of(input), TfInput::of(input, 1), TfInput::of(input, 2), "low", "high"});
        node.attributes.set("Tinput", kQint32);
        node.attributes.set("out_type", type);
    };
    conv("shortcut", "QuantizedConv2DWithBias");
    requantize("summand", "shortcut", kQint8);
    TfNode& main = conv("main", "_FusedQuantizedConv2D");
    TfList types;
    types.types = {kQuint8, kQint8, kFloat, kQint8};
    main.attributes.set("Tdevice_inputs", types);
    TfList ops;
    ops.strings = {"BiasAdd", "Sum", "Relu"};
    main.attributes.set("fused_ops", ops);
    main.inputs = {"q", "w", "b", "summand", "low", "high", "low", "high", "summand:1", "summand:2"};
    requantize("y", "main", kQuint8);
    EXPECT_EQ(fuse_quantized_conv_and_requantize(graph, {"y"}), 2);
    const TfNode& summand = *graph.find("summand");
    EXPECT_EQ(summand.op, "_FusedQuantizedConv2D");
    EXPECT_EQ(summand.attributes.get_strings("fused_ops"), (Words{"BiasAdd", "Requantize"}));
    EXPECT_EQ(summand.attributes.get_type("out_type"), kQuint8);
    const TfNode& sum = *graph.find("y");
    EXPECT_EQ(sum.attributes.get_strings("fused_ops"), (Words{"BiasAdd", "Sum", "Relu", "Requantize"}));
    EXPECT_EQ(sum.attributes.get_type("Tsummand"), kQuint8);
    const double offset = 128 * (2.0 / 255);
    EXPECT_NEAR(constant_of(graph, summand.inputs[2])->to_doubles()[0], 1 + offset, 1e-5);
    EXPECT_NEAR(constant_of(graph, sum.inputs[2])->to_doubles()[0], 1 - offset, 1e-5);
    EXPECT_EQ(sum.inputs.size(), 12U);
}

TEST(CalibrationLog, ReadsWhatGraphsPrint) {
    BatchLog log;
    parse_log(
        "epoch 1;a/b__print__;__requant_min_max:[-1.5][2.25] and;c__print__;__requant_min_max:[0][1e-3]\n"
        "2020 I ;a/b__print__;__requant_min_max:[-2][1]\n"
        ";d__print__;__max:[7]\n;d__print__;__min:[-7]\nnoise;e__print__;__requant_min_max:[x][1]\n;f__print__;__max",
        log);
    ASSERT_EQ(log.size(), 3U);
    EXPECT_EQ(log["a/b"].size(), 2U);
    EXPECT_EQ(log["a/b"][1].min, -2);
    EXPECT_EQ(log["c"][0].max, 1e-3);
    EXPECT_EQ(log["d"][0].min, -7);
}

TEST(CalibrationLog, CombinesBatches) {
    BatchLog log;
    for (int i = 0; i < 100; ++i) log["t"].push_back({-1.0 - i, 1.0 + i});
    const Interval direct = combine(log, {"t"}, BatchRanges::direct)["t"];
    EXPECT_EQ(direct.max, 95.0);  // the 95th of 100, from below
    EXPECT_EQ(direct.min, -95.0);
    EXPECT_EQ(combine(log, {"t"}, BatchRanges::minmax)["t"].max, 100.0);
    const BatchLog two{{"t", {{0, 4}, {-2, 8}}}};
    EXPECT_EQ(combine(two, {"t"}, BatchRanges::ma)["t"].max, 6.0);
    EXPECT_EQ(combine(two, {"t"}, BatchRanges::direct)["t"].max, 8.0);
    EXPECT_THROW(combine(log, {"t", "unseen"}, BatchRanges::direct), Error);
}

TEST(CalibrationCommand, PutsTheGraphWhereItBelongs) {
    EXPECT_EQ(calibration_command("run {} -n 3", "/a b/g.pb"), "run '/a b/g.pb' -n 3");
    EXPECT_EQ(calibration_command("run --input_graph=old.pb -n 3", "/g.pb"),
              "run --input_graph='/g.pb' -n 3");
    EXPECT_EQ(calibration_command("run --in-graph 'o l d.pb'", "/g.pb"), "run --in-graph '/g.pb'");
    EXPECT_EQ(calibration_command("run -n 3", "/g.pb"), "run -n 3 --input_graph='/g.pb'");
}

}  // namespace
}  // namespace kilter::tensorflow
