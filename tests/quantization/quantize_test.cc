#include "kilter/quantization/quantize.h"

#include <gtest/gtest.h>

#include "ops/post_ops.h"
#include "quantization/testing.h"

namespace kilter::quantize_test {

using namespace testing;

TEST(Quantize, ConvolutionsReadAndWriteIntegers) {
    Net net;
    Value* x = net.input({1, 3, 8, 8});
    net.output(net.conv(net.relu_conv(x, 8, "a"), 4, "b"));
    const Quantized done = net.quantize();
    // x and a's result have a pair each; b writes f32, because nobody reads it on integers. Weights and biases: four more.
    EXPECT_EQ(done.graph().count("QuantizeLinear"), 2U);
    EXPECT_EQ(done.graph().count("DequantizeLinear"), 6U);
    EXPECT_EQ(done.weights("a").dtype(), DType::i8);
    EXPECT_EQ(done.zero_point("a/out"), 0);
    done.expect_close(0.05);
}

TEST(Quantize, MaxPoolReshapeAndConcatShareOneScale) {
    Net net;
    Value* x = net.input({1, 3, 8, 8});
    Value* a = net.relu_conv(x, 4, "a", 3.0F);
    Value* b = net.relu_conv(x, 4, "b", 0.1F);
    Value* joined = net.add("Concat", {a, b}, attribute("axis", int64_t{1}), "cat");
    Value* pooled = net.add("MaxPool", {joined}, ints_attribute("kernel_shape", {2, 2}), "pool");
    net.output(net.conv(pooled, 4, "c"));
    const Quantized done = net.quantize();
    EXPECT_EQ(done.scale("a/out"), done.scale("b/out"));
    EXPECT_EQ(done.scale("a/out"), done.scale("cat/out"));
    EXPECT_EQ(done.scale("cat/out"), done.scale("pool/out"));
    EXPECT_FLOAT_EQ(done.scale("a/out") * 255, std::max(done.seen("a/out").max, done.seen("b/out").max));
    done.expect_close(0.05);
}

TEST(Quantize, ResidualsFromIntegersAreReadAsIntegers) {
    Net net;
    Value* x = net.input({1, 4, 8, 8});
    Value* trunk = net.relu_conv(x, 4, "trunk");
    Value* y = net.relu_conv(trunk, 4, "branch");
    append_post_op(net.graph(), *y->producer(), "add", 0, 0, trunk);
    net.output(net.conv(y, 4, "head"));
    const Quantized done = net.quantize();
    EXPECT_NE(produced_by_dequantize(done.node("branch").input(3)), nullptr);
    done.expect_close(0.05);
}

TEST(Quantize, ReadersInFloatingPointOfFloatValuesKeepThem) {
    Net net;
    Value* x = net.input({2, 5, 8});
    Value* norm = net.layer_norm(x, 8, "norm");
    Value* y = net.matmul(norm, 8, 8, "dense");
    append_post_op(net.graph(), *y->producer(), "add", 0, 0, norm);
    net.output(net.layer_norm(y, 8, "out"));
    const Quantized done = net.quantize();
    EXPECT_NE(produced_by_dequantize(done.node("dense").input(0)), nullptr);
    EXPECT_EQ(done.node("dense").input(3)->name(), "norm/out");
    EXPECT_EQ(done.graph().count("QuantizeLinear"), 1U);
    done.expect_close(0.05);
}

TEST(Quantize, AttentionReadsUnsignedQueriesAndSignedKeysAndValues) {
    Net net;
    Value* x = net.input({2, 6, 8});
    const auto head = [&](const std::string& name) {
        Value* y = net.add("Reshape", {net.matmul(x, 8, 8, name), ints(net.graph(), {0, 0, 2, 4})}, {},
                           name + "/heads");
        return net.add("Transpose", {y}, ints_attribute("perm", {0, 2, 1, 3}), name + "/split");
    };
    Value* y = net.add("Attention", {head("q"), head("k"), head("v")}, attribute("scale", 0.5F), "attention",
                       kKilterDomain);
    y = net.add("Transpose", {y}, ints_attribute("perm", {0, 2, 1, 3}), "merge");
    y = net.add("Reshape", {y, ints(net.graph(), {0, 0, 8})}, {}, "join");
    net.output(net.matmul(y, 8, 4, "proj"));
    const Quantized done = net.quantize();
    EXPECT_EQ(done.dtype("q/out"), DType::u8);
    EXPECT_EQ(done.dtype("k/out"), DType::i8);
    EXPECT_EQ(done.dtype("v/split/out"), DType::i8);
    EXPECT_EQ(done.zero_point("k/out"), 0);
    done.expect_close(0.08);
}

TEST(Quantize, AValueReadAsFirstAndSecondOperandGetsBothForms) {
    Net net;
    Value* x = net.relu_matmul(net.input({4, 6}), 6, 6, "a");
    Value* product = net.add("MatMul", {x, x}, attribute("trans_b", int64_t{1}), "gram", kKilterDomain);
    net.output(product);
    const Quantized done = net.quantize();
    EXPECT_EQ(done.node("gram").input(0)->producer()->input(0)->type.dtype, DType::u8);
    EXPECT_EQ(done.node("gram").input(1)->producer()->input(0)->type.dtype, DType::i8);
    done.expect_close(0.05);
}

TEST(Quantize, DepthwiseAndGroupedConvolutionsKeepTheirChannels) {
    Net net;
    Value* x = net.input({1, 8, 6, 6});
    net.output(net.conv(net.grouped(net.grouped(x, 8, 8, "depthwise"), 8, 2, "grouped"), 4, "point"));
    const Quantized done = net.quantize();
    EXPECT_EQ(done.node("depthwise").input(1)->producer()->input(1)->type.static_shape(), Shape{8});
    done.expect_close(0.05);
}

TEST(Quantize, AllZeroAndConstantActivationsPassThrough) {
    Net net;
    Value* x = net.input({1, 3, 4, 4});
    net.output(net.conv(net.relu_conv(x, 4, "a"), 4, "b"));
    for (const float value : {0.0F, 2.0F, -2.0F}) {
        const Quantized done = net.quantize({}, {Tensor::filled(DType::f32, {1, 3, 4, 4}, value)});
        EXPECT_GT(done.scale("x"), 0.0F);
        done.expect_close(0.05);
    }
}

TEST(Quantize, DeadChannelsAndOneHugeOutlierDoNoHarmToTheRest) {
    Net net;
    Value* x = net.input({1, 3, 4, 4});
    Value* y = net.relu_conv(x, 4, "a");
    Tensor weights = net.graph().constant(y->producer()->input(1))->clone();
    for (size_t i = 0; i < 3; ++i) weights.as_mutable<float>()[i] = 0.0F;
    weights.as_mutable<float>()[5] = 1000.0F;
    net.graph().replace_constant(y->producer()->input(1), weights);
    net.output(y);
    net.quantize().expect_close(0.02);
}

TEST(Quantize, WeightsSharedByTwoOperatorsAreStoredOnce) {
    Net net;
    Value* x = net.input({2, 6});
    Value* shared = weights(net.graph(), {6, 6}, 3);
    Value* a = net.add("MatMul", {x, shared}, {}, "a", kKilterDomain);
    Value* b = net.add("MatMul", {a, shared}, {}, "b", kKilterDomain);
    net.output(b);
    const Quantized done = net.quantize();
    EXPECT_EQ(done.node("a").input(1), done.node("b").input(1));
    done.expect_close(0.05);
}

TEST(Quantize, OneElementTensorsWork) {
    Net net;
    net.output(net.relu_matmul(net.input({1, 1}), 1, 1, "a"));
    net.quantize().expect_close(0.05);
}

TEST(Quantize, AValueWithTwoReadersIsQuantizedOnce) {
    Net net;
    Value* y = net.relu_conv(net.input({1, 3, 6, 6}), 4, "a");
    net.output(net.conv(y, 4, "b"));
    net.output(net.conv(y, 4, "c"));
    const Quantized done = net.quantize();
    EXPECT_EQ(done.graph().count("QuantizeLinear"), 2U);
    EXPECT_EQ(done.node("b").input(0), done.node("c").input(0));
}

TEST(Quantize, ExcludedOperatorsReadAndWriteFloat) {
    Net net;
    Value* y = net.relu_conv(net.input({1, 3, 6, 6}), 4, "a");
    net.output(net.conv(net.conv(y, 4, "b"), 4, "c"));
    QuantizeOptions options;
    options.exclude = {"b"};
    const Quantized done = net.quantize(options);
    EXPECT_EQ(done.node("b").input(0)->name(), "a/out");
    EXPECT_NE(produced_by_dequantize(done.node("c").input(0)), nullptr);
    EXPECT_EQ(done.report("b").reason, "the plan says f32");
    options.exclude = {"nothing"};
    EXPECT_THROW(net.quantize(options), Error);
    options.exclude = {};
    options.only = {"c"};
    EXPECT_EQ(net.quantize(options).report("a").precision, Precision::f32);
}

TEST(Quantize, TransparentOperatorsFollowWhatIsAroundThem) {
    Net net;
    Value* y = net.relu_conv(net.input({1, 3, 8, 8}), 4, "a");
    y = net.add("MaxPool", {y}, ints_attribute("kernel_shape", {2, 2}), "pool");
    net.output(net.conv(y, 4, "b"));
    QuantizeOptions options;
    options.exclude = {"b"};
    const Quantized done = net.quantize(options);
    EXPECT_EQ(done.report("pool").precision, Precision::f32);
    EXPECT_EQ(done.node("pool").input(0)->name(), "a/out");
}

TEST(Quantize, SchemesGranularityAndBitsFollowThePlan) {
    Net net;
    net.output(net.conv(net.conv(net.input({1, 3, 6, 6}), 4, "a"), 4, "b"));
    QuantizeOptions options;
    options.overrides = {
        {Override::Of::model, {}, {.scheme = Scheme::sym, .granularity = Granularity::per_tensor}},
        {Override::Of::name, "b", {.bits = 4}}};
    const Quantized done = net.quantize(options);
    EXPECT_EQ(done.zero_point("a/out"), 128);
    EXPECT_EQ(done.node("a").input(1)->producer()->input(1)->type.static_shape(), Shape{});
    for (const int8_t w : done.weights("b").as<int8_t>()) EXPECT_LE(std::abs(w), 7);
}

TEST(Quantize, StatisticsOfAnotherModelAreRefused) {
    Net net;
    net.output(net.conv(net.input({1, 3, 6, 6}), 4, "a"));
    Model model;
    model.graph = net.graph().clone();
    EXPECT_THROW(quantize(std::move(model), Stats{}), Error);
}

TEST(Quantize, PlansOfAnotherModelAreRefused) {
    Net net;
    net.output(net.conv(net.input({1, 3, 6, 6}), 4, "a"));
    QuantizeOptions options;
    options.plan = Plan();
    options.plan->operators.push_back({"elsewhere", "Conv"});
    EXPECT_THROW(net.quantize(options), Error);
    options.plan->operators = {{"a", "MatMul"}};
    EXPECT_THROW(net.quantize(options), Error);
}

TEST(Quantize, TargetOnnxRuntimeQuantizesBeforeTheAddition) {
    Net net;
    Value* trunk = net.relu_conv(net.input({1, 4, 8, 8}), 4, "trunk");
    Value* y = net.conv(trunk, 4, "branch");
    append_post_op(net.graph(), *y->producer(), "add", 0, 0, trunk);
    append_post_op(net.graph(), *y->producer(), "relu");
    net.output(net.conv(y, 4, "head"));
    QuantizeOptions options;
    options.target = Target::onnxruntime;
    const Quantized done = net.quantize(options);
    const Node& add = *find_node(done.graph(), "Add");
    EXPECT_NE(produced_by_dequantize(add.input(0)), nullptr);
    EXPECT_NE(produced_by_dequantize(add.input(1)), nullptr);
    EXPECT_EQ(add.output()->users().size(), 1U);
    EXPECT_TRUE(add.output()->users()[0]->is("Relu"));
    done.expect_close(0.06);
}

TEST(Quantize, TargetMxnetKnowsNoZeroPoints) {
    Net net;
    net.output(net.conv(net.relu_conv(net.input({1, 3, 6, 6}), 4, "a"), 4, "b"));
    QuantizeOptions options;
    options.target = Target::mxnet;
    const Plan plan = make_plan(net.graph(), options);
    ASSERT_FALSE(plan.operators.empty());
    for (const OperatorPlan& entry : plan.operators) {
        EXPECT_EQ(entry.activation.scheme, Scheme::sym) << entry.name;
        EXPECT_EQ(entry.activation.algorithm, RangeAlgorithm::minmax) << entry.name;
    }
    // What the user says counts more.
    options.overrides = {{Override::Of::name, "a", {.algorithm = RangeAlgorithm::kl}}};
    EXPECT_EQ(make_plan(net.graph(), options).find("a")->activation.algorithm, RangeAlgorithm::kl);
}

TEST(Quantize, Bf16StandsBetweenCasts) {
    Net net;
    net.output(net.conv(net.relu_conv(net.input({1, 3, 6, 6}), 4, "a"), 4, "b"));
    QuantizeOptions options;
    options.overrides = {{Override::Of::name, "a", {.precision = Precision::bf16}}};
    const Quantized done = net.quantize(options);
    EXPECT_EQ(done.node("a").output()->type.dtype, DType::bf16);
    EXPECT_EQ(done.report("a").precision, Precision::bf16);
    done.expect_close(0.05);
}

}  // namespace kilter::quantize_test
