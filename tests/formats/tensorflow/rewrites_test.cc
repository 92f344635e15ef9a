// Rewrites: what the pattern becomes, and that the numbers are those of the pattern.
#include "formats/tensorflow/rewrites/rewrites.h"

#include <gtest/gtest.h>

#include "formats/tensorflow/rewrites/affine.h"
#include "kilter/base/error.h"

namespace kilter::tensorflow {
namespace {

const std::vector<float> kWeights{1, -2, 3, 4, 5, -6};  // [1,1,2,3]

std::vector<std::string> words(std::initializer_list<const char*> list) { return {list.begin(), list.end()}; }

TfNode& typed(TfNode& node) {
    node.attributes.set("T", kFloat);
    return node;
}

// x → conv (two channels in, three out).
TfGraph convolution(const std::string& padding = "VALID") {
    TfGraph graph;
    TfNode& x = graph.add("x", "Placeholder");
    x.attributes.set("dtype", kFloat);
    x.attributes.set("shape", TfShape({-1, 8, 8, 2}));
    graph.add_constant("w", Tensor::of<float>({1, 1, 2, 3}, kWeights));
    TfNode& conv = typed(graph.add("conv", "Conv2D", {"x", "w"}));
    TfList strides;
    strides.ints = {1, 1, 1, 1};
    conv.attributes.set("strides", strides);
    conv.attributes.set("padding", padding.c_str());
    return graph;
}

TfNode& vector(TfGraph& graph, const std::string& name, const std::vector<float>& values) {
    return graph.add_constant(name, Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
}

std::vector<double> weights_of(const TfGraph& graph, const std::string& conv = "conv") {
    return constant_of(graph, graph.find(conv)->inputs[1])->to_doubles();
}

std::vector<double> bias_values(const TfGraph& graph, const std::string& bias) {
    EXPECT_EQ(graph.find(bias)->op, "BiasAdd");
    return constant_of(graph, graph.find(bias)->inputs[1])->to_doubles();
}

void expect_scaled(const TfGraph& graph, const std::vector<double>& scale, const std::string& conv = "conv") {
    const std::vector<double> weights = weights_of(graph, conv);
    for (size_t i = 0; i < weights.size(); ++i)
        EXPECT_NEAR(weights[i], kWeights[i] * scale[i % 3], 1e-5) << i;
}

void expect_bias(const TfGraph& graph, const std::string& name, const std::vector<double>& expected) {
    const std::vector<double> bias = bias_values(graph, name);
    ASSERT_EQ(bias.size(), expected.size());
    for (size_t i = 0; i < bias.size(); ++i) EXPECT_NEAR(bias[i], expected[i], 1e-5) << i;
}

void add_statistics(TfGraph& graph) {
    vector(graph, "mean", {1, 2, 3});
    vector(graph, "variance", {4, 9, 16});
    vector(graph, "gamma", {2, 3, 4});
    vector(graph, "beta", {-1, 0, 1});
}

TEST(FoldBatchNorms, FoldsEverySpellingIntoTheWeights) {
    for (const char* op :
         {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "BatchNormWithGlobalNormalization"}) {
        SCOPED_TRACE(op);
        TfGraph graph = convolution();
        add_statistics(graph);
        const bool global = std::string(op) == "BatchNormWithGlobalNormalization";
        TfNode& norm =
            typed(graph.add("bn", op,
                            global ? std::vector<TfInput>{"conv", "mean", "variance", "beta", "gamma"}
                                   : std::vector<TfInput>{"conv", "gamma", "beta", "mean", "variance"}));
        if (global) {
            norm.attributes.set("variance_epsilon", 0.0F);
            norm.attributes.set("scale_after_normalization", true);
        } else {
            norm.attributes.set("epsilon", 0.0F);
            norm.attributes.set("is_training", false);
        }
        EXPECT_EQ(fold_batch_norms(graph, {"bn"}), 1);
        expect_scaled(graph, {1, 1, 1});         // gamma / sqrt(variance)
        expect_bias(graph, "bn", {-2, -2, -2});  // beta - mean * gamma / sqrt(variance)
        EXPECT_EQ(fold_batch_norms(graph, {"bn"}), 0);
    }
}

TEST(FoldBatchNorms, FoldsTheFormThatFreezingLeaves) {
    TfGraph graph = convolution();
    add_statistics(graph);
    graph.add_constant("epsilon", Tensor::scalar<float>(0.0F));
    typed(graph.add("with_epsilon", "AddV2", {"variance", "epsilon"}));
    typed(graph.add("inverse", "Rsqrt", {"with_epsilon"}));
    typed(graph.add("factor", "Mul", {"inverse", "gamma"}));
    typed(graph.add("scaled", "Mul", {"conv", "factor"}));
    typed(graph.add("scaled_mean", "Mul", {"mean", "factor"}));
    typed(graph.add("shift", "Sub", {"beta", "scaled_mean"}));
    typed(graph.add("bn", "AddV2", {"scaled", "shift"}));
    EXPECT_EQ(fold_batch_norms(graph, {"bn"}), 1);
    expect_scaled(graph, {1, 1, 1});
    expect_bias(graph, "bn", {-2, -2, -2});
    EXPECT_EQ(graph.find("scaled"), nullptr) << "leftovers are readers of the convolution";
}

TEST(FoldBatchNorms, KeepsTheBiasBefore) {
    TfGraph graph = convolution();
    add_statistics(graph);
    vector(graph, "b", {10, 20, 40});
    typed(graph.add("biased", "BiasAdd", {"conv", "b"}));
    TfNode& norm =
        typed(graph.add("bn", "FusedBatchNormV3", {"biased", "gamma", "beta", "mean", "variance"}));
    norm.attributes.set("epsilon", 0.0F);
    norm.attributes.set("is_training", false);
    EXPECT_EQ(fold_batch_norms(graph, {"bn"}), 1);
    expect_bias(graph, "bn", {8, 18, 38});
}

TEST(FoldBatchNorms, LeavesTrainingAndSharedConvolutionsAlone) {
    TfGraph graph = convolution();
    add_statistics(graph);
    TfNode& norm = typed(graph.add("bn", "FusedBatchNormV3", {"conv", "gamma", "beta", "mean", "variance"}));
    norm.attributes.set("is_training", true);
    EXPECT_EQ(fold_batch_norms(graph, {"bn"}), 0);
    norm.attributes.set("is_training", false);
    typed(graph.add("other", "Relu", {"conv"}));
    EXPECT_EQ(fold_batch_norms(graph, {"bn", "other"}), 0);
    EXPECT_EQ(fold_batch_norms(graph, {"bn"}), 0) << "somebody reads the convolution, wanted or not";
}

TEST(FoldSubDivMul, FoldsTheFourSteps) {
    TfGraph graph = convolution();
    vector(graph, "mean", {1, 2, 3});
    vector(graph, "deviation", {2, 3, 4});
    vector(graph, "gamma", {4, 3, 2});
    vector(graph, "beta", {1, 1, 1});
    typed(graph.add("difference", "Sub", {"conv", "mean"}));
    typed(graph.add("quotient", "RealDiv", {"difference", "deviation"}));
    typed(graph.add("product", "Mul", {"quotient", "gamma"}));
    typed(graph.add("y", "BiasAdd", {"product", "beta"}));
    EXPECT_EQ(fold_subdivmul_batch_norms(graph, {"y"}), 1);
    expect_scaled(graph, {2, 1, 0.5});
    expect_bias(graph, "y", {-1, -1, -0.5});
}

TEST(FoldConvolutionWithBiasMul, PutsTheScalarOfABranchIntoItsConvolution) {
    TfGraph graph = convolution();
    vector(graph, "b", {1, 2, 3});
    graph.add_constant("scale", Tensor::scalar<float>(0.5F));
    typed(graph.add("biased", "BiasAdd", {"conv", "b"}));
    typed(graph.add("scaled", "Mul", {"scale", "biased"}));
    typed(graph.add("trunk", "Relu", {"x"}));
    typed(graph.add("sum", "Add", {"trunk", "scaled"}));
    EXPECT_EQ(fold_convolutionwithbias_mul(graph, {"sum"}), 1);
    expect_scaled(graph, {0.5, 0.5, 0.5});
    expect_bias(graph, "scaled", {0.5, 1, 1.5});
    EXPECT_EQ(graph.find("sum")->inputs[1].node, "scaled");
}

TEST(FuseColumnWiseMul, ScalesTheColumns) {
    TfGraph graph = convolution();
    vector(graph, "factor", {2, 3, 4});
    typed(graph.add("y", "Mul", {"conv", "factor"}));
    EXPECT_EQ(fuse_column_wise_mul(graph, {"y"}), 1);
    EXPECT_EQ(graph.find("y")->op, "Identity");
    EXPECT_EQ(graph.find("y")->inputs[0].node, "conv");
    expect_scaled(graph, {2, 3, 4});
}

TEST(FuseColumnWiseMul, LeavesTheProductItsName) {
    TfGraph graph = convolution();
    vector(graph, "factor", {2, 3, 4});
    typed(graph.add("scaled", "Mul", {"conv", "factor"}));
    typed(graph.add("y", "Relu", {"scaled"}));
    EXPECT_EQ(fuse_column_wise_mul(graph, {"y"}), 1);
    EXPECT_EQ(graph.find("scaled"), nullptr);
    EXPECT_EQ(graph.find("y")->inputs[0].node, "conv");
}

TEST(ConstantExpression, HasTheShapeThatBroadcastingGives) {
    TfGraph graph = convolution();
    graph.add_constant("one", Tensor::of<float>({1, 1, 1, 1}, {2}));
    vector(graph, "factor", {2, 3, 4});
    typed(graph.add("both", "Mul", {"one", "factor"}));
    const std::optional<Tensor> value = constant_expression(graph, "both");
    ASSERT_TRUE(value);
    EXPECT_EQ(value->shape(), (Shape{1, 1, 1, 3}));
    EXPECT_EQ(value->to_doubles(), (std::vector<double>{4, 6, 8}));
}

TEST(ConstantExpression, SqueezesOnlyWhatItIsTold) {
    TfGraph graph;
    graph.add_constant("c", Tensor::of<float>({1, 3, 1}, {1, 2, 3}));
    TfList axes;
    axes.ints = {0};
    typed(graph.add("squeezed", "Squeeze", {"c"})).attributes.set("squeeze_dims", axes);
    EXPECT_EQ(constant_expression(graph, "squeezed")->shape(), (Shape{3, 1}));
    EXPECT_FALSE(per_channel(graph, "squeezed", {3, 4}));
    EXPECT_FALSE(per_channel(graph, "c", {1, 2}));  // it would make three dimensions of two
}

TEST(ConstantExpression, IsComputedOnce) {
    TfGraph graph;
    graph.add_constant("c0", Tensor(DType::f32, {1 << 18}));
    for (int i = 1; i <= 16; ++i)
        typed(graph.add(fmt::format("c{}", i), "Add",
                        {TfInput(fmt::format("c{}", i - 1)), TfInput(fmt::format("c{}", i - 1))}));
    EXPECT_TRUE(constant_expression(graph, "c16"));  // 65,536 sums of 1 MiB, if each were computed anew
}

TEST(FuseColumnWiseMul, KnowsWhereColumnsOfATransposedMatrixAre) {
    TfGraph graph;
    graph.add("x", "Placeholder").attributes.set("dtype", kFloat);
    graph.add_constant("w", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    typed(graph.add("product", "MatMul", {"x", "w"})).attributes.set("transpose_b", true);
    vector(graph, "factor", {10, 100});
    typed(graph.add("y", "Mul", {"product", "factor"}));
    EXPECT_EQ(fuse_column_wise_mul(graph, {"y"}), 1);
    EXPECT_EQ(weights_of(graph, "product"), (std::vector<double>{10, 20, 30, 400, 500, 600}));
}

TEST(FusePadAndConv, LetsTheConvolutionPad) {
    TfGraph graph = convolution();
    graph.add_constant("paddings", Tensor::of<int32_t>({4, 2}, {0, 0, 1, 2, 3, 0, 0, 0}));
    TfNode& pad = typed(graph.add("pad", "Pad", {"x", "paddings"}));
    graph.find("conv")->inputs[0] = TfInput::of(pad.name);
    EXPECT_EQ(mkl_fuse_pad_and_conv(graph, {"conv"}), 1);
    const TfNode& conv = *graph.find("conv");
    EXPECT_EQ(conv.inputs[0].node, "x");
    EXPECT_EQ(conv.attributes.get_string("padding"), "EXPLICIT");
    EXPECT_EQ(conv.attributes.get_ints("explicit_paddings"), (std::vector<int64_t>{0, 0, 1, 2, 3, 0, 0, 0}));
    EXPECT_EQ(graph.find("pad"), nullptr);
}

TEST(FusePadAndConv, LeavesPaddedChannelsAndOtherValuesAlone) {
    TfGraph channels = convolution();
    channels.add_constant("paddings", Tensor::of<int32_t>({4, 2}, {0, 0, 1, 1, 1, 1, 0, 1}));
    typed(channels.add("pad", "Pad", {"x", "paddings"}));
    channels.find("conv")->inputs[0] = TfInput::of("pad");
    EXPECT_EQ(mkl_fuse_pad_and_conv(channels, {"conv"}), 0);

    TfGraph ones = convolution();
    ones.add_constant("paddings", Tensor::of<int32_t>({4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}));
    ones.add_constant("value", Tensor::scalar<float>(1.0F));
    typed(ones.add("pad", "PadV2", {"x", "paddings", "value"}));
    ones.find("conv")->inputs[0] = TfInput::of("pad");
    EXPECT_EQ(mkl_fuse_pad_and_conv(ones, {"conv"}), 0);
}

TEST(SplitSharedInputs, GivesEveryReaderAConstantOfItsOwn) {
    TfGraph graph = convolution();
    typed(graph.add("second", "Conv2D", {"x", "w"})).attributes.set("padding", "VALID");
    typed(graph.add("third", "Conv2D", {"x", "w"})).attributes.set("padding", "VALID");
    EXPECT_EQ(split_shared_inputs(graph), 2);
    ASSERT_NE(graph.find("w_2"), nullptr);
    ASSERT_NE(graph.find("w_3"), nullptr);
    EXPECT_EQ(weights_of(graph, "third"), weights_of(graph));
    EXPECT_EQ(split_shared_inputs(graph), 0);
}

TEST(StripUnused, KeepsWhatLeadsToTheOutputs) {
    TfGraph graph = convolution();
    typed(graph.add("relu", "Relu", {"conv"}));
    typed(graph.add("loss", "Neg", {"relu"}));
    EXPECT_EQ(strip_unused(graph, words({"conv"}), words({"relu:0"})), 3);  // loss, and what made the input
    EXPECT_EQ(graph.find("conv")->op, "Placeholder");
    EXPECT_EQ(graph.find("conv")->attributes.get_type("dtype"), kFloat);
    EXPECT_EQ(graph.find("loss"), nullptr);
    EXPECT_EQ(graph.find("x"), nullptr);
    try {
        strip_unused(graph, {}, words({"nothing"}));
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("'nothing'"), std::string::npos);
    }
}

TEST(RemoveTrainingNodes, TakesOutWhatPassesItsInputOn) {
    TfGraph graph = convolution();
    typed(graph.add("a", "Identity", {"conv"}));
    typed(graph.add("b", "CheckNumerics", {"a"}));
    graph.add("fine", "Assert", {"b"});
    typed(graph.add("c", "StopGradient", {"b"}));
    typed(graph.add("relu", "Relu", {"c", "^fine"}));
    typed(graph.add("out", "Identity", {"relu"}));
    EXPECT_EQ(remove_training_nodes(graph, {}, {"out"}), 4);
    EXPECT_EQ(graph.find("relu")->inputs, (std::vector<TfInput>{"conv"}));
    EXPECT_NE(graph.find("out"), nullptr) << "wanted names stay";
    check(graph);
}

TEST(RemoveTrainingNodes, TakesTheBranchOfInference) {
    TfGraph graph = convolution();
    graph.add("dropout/keras_learning_phase", "Placeholder").attributes.set("dtype", kBool);
    typed(graph.add("switch", "Switch", {"conv", "dropout/keras_learning_phase"}));
    graph.add_constant("keep", Tensor::scalar<float>(0.5F));
    typed(graph.add("dropped", "Mul", {"switch:1", "keep"}));
    typed(graph.add("other", "Switch", {"conv", "dropout/keras_learning_phase"}));
    typed(graph.add("merge", "Merge", {"other", "dropped"}));
    typed(graph.add("relu", "Relu", {"merge"}));
    TfGraph fed = graph;
    EXPECT_GT(remove_training_nodes(graph, {}, {"relu"}), 0);
    EXPECT_EQ(graph.find("relu")->inputs, (std::vector<TfInput>{"conv"}));
    // Who feeds the learning phase decides at run time.
    remove_training_nodes(fed, words({"dropout/keras_learning_phase"}), {"relu"});
    EXPECT_EQ(fed.find("relu")->inputs, (std::vector<TfInput>{"merge"}));
}

// x → BatchMatMulV2 → Add → GELU by erf → y.
TfGraph dense_layer() {
    TfGraph graph;
    TfNode& x = graph.add("x", "Placeholder");
    x.attributes.set("dtype", kFloat);
    graph.add_constant("w", Tensor::of<float>({2, 3}, kWeights));
    vector(graph, "b", {1, 2, 3});
    typed(graph.add("product", "BatchMatMulV2", {"x", "w"}));
    typed(graph.add("biased", "AddV2", {"product", "b"}));
    graph.add_constant("root", Tensor::scalar<float>(1.41421356F));
    graph.add_constant("half", Tensor::scalar<float>(0.5F));
    graph.add_constant("one", Tensor::scalar<float>(1.0F));
    typed(graph.add("scaled", "RealDiv", {"biased", "root"}));
    typed(graph.add("erf", "Erf", {"scaled"}));
    typed(graph.add("shifted", "AddV2", {"one", "erf"}));
    typed(graph.add("halved", "Mul", {"half", "biased"}));
    typed(graph.add("gelu", "Mul", {"halved", "shifted"}));
    typed(graph.add("y", "Neg", {"gelu"}));
    return graph;
}

TEST(FlattenBatchProducts, PutsTheReshapeBehindBiasAndGelu) {
    TfGraph graph = dense_layer();
    EXPECT_GT(flatten_batch_products(graph, {"y"}), 0);
    check(graph);
    const TfNode& product = *graph.find("product");
    EXPECT_EQ(product.op, "MatMul");
    EXPECT_EQ(constant_of(graph, graph.find(product.inputs[0].node)->inputs[1])->to_ints(),
              (std::vector<int64_t>{-1, 2}));
    EXPECT_EQ(graph.find("gelu")->op, "Reshape");
    EXPECT_EQ(graph.find("y")->inputs[0].node, "gelu");
    const TfNode& last = *graph.find(graph.find("gelu")->inputs[0].node);
    EXPECT_EQ(last.op, "Mul");
    const TfNode& biased = *graph.find(graph.find("halved")->inputs[1].node);
    EXPECT_EQ(biased.op, "BiasAdd");
    EXPECT_EQ(biased.inputs[0].node, "product");
    EXPECT_EQ(flatten_batch_products(graph, {"y"}), 0);
}

TEST(FlattenBatchProducts, KeepsTheNameOfWhatIsWanted) {
    TfGraph graph = dense_layer();
    flatten_batch_products(graph, {"y", "product"});
    EXPECT_EQ(graph.find("product")->op, "Reshape");
    EXPECT_EQ(graph.find(graph.find("product")->inputs[0].node)->op, "MatMul");
}

TEST(FlattenBatchProducts, LeavesOtherCurvesAndProductsOfBatchesAlone) {
    TfGraph other = dense_layer();
    other.find("half")->attributes.set("value", TfTensor(Tensor::scalar<float>(0.6F)));
    flatten_batch_products(other, {"y"});
    EXPECT_EQ(other.find("gelu")->op, "Mul");
    EXPECT_EQ(other.find("biased")->op, "Reshape");
    TfGraph batches = dense_layer();
    batches.find("w")->attributes.set("value", TfTensor(Tensor::of<float>({1, 2, 3}, kWeights)));
    EXPECT_EQ(flatten_batch_products(batches, {"y"}), 0);
}

TEST(OptimizeForQuantization, DoesAllOfItAndIsIdempotent) {
    TfGraph graph = convolution();
    add_statistics(graph);
    TfNode& norm = typed(graph.add("bn", "FusedBatchNormV3", {"conv", "gamma", "beta", "mean", "variance"}));
    norm.attributes.set("is_training", false);
    typed(graph.add("same", "Identity", {"bn"}));
    typed(graph.add("relu", "Relu", {"same"}));
    const auto inputs = words({"x"});
    const auto outputs = words({"relu"});
    optimize_for_quantization(graph, inputs, outputs);
    const size_t size = graph.size();
    EXPECT_EQ(size, 6U);  // x, weights, conv, bias, BiasAdd, relu
    optimize_for_quantization(graph, inputs, outputs);
    EXPECT_EQ(graph.size(), size);
    check(graph);
}

}  // namespace
}  // namespace kilter::tensorflow
