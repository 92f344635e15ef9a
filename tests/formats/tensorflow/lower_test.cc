#include <gtest/gtest.h>

#include "engine/ref/executor.h"
#include "formats/tensorflow/inline_functions.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/samples.h"
#include "formats/tensorflow/summary.h"
#include "kilter/base/error.h"

namespace kilter::tensorflow {
namespace {

using namespace testing;

TfGraph graph_of(const std::string& text) { return read_text("# test\n" + text); }

const std::string kVector =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }"
    " attr { key: 'shape' value { shape { dim { size: -1 } } } } }\n";

std::string lowering_error(const TfGraph& graph, const LowerOptions& options) {
    try {
        lower(graph, options);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(TensorFlowLower, KeepsNamesAndPorts) {
    const TfGraph graph = graph_of(
        kVector +
        "node { name: 'axis' op: 'Const' attr { key: 'value' value { tensor { dtype: DT_INT32 int_val: 0 tensor_shape {} } } } }\n"
        "node { name: 'scope/halves' op: 'Split' input: 'axis' input: 'x' attr { key: 'num_split' value { i: 2 } } }\n"
        "node { name: 'y' op: 'Neg' input: 'scope/halves:1' attr { key: 'T' value { type: DT_FLOAT } } }\n");
    const Model model = lower(graph, {{}, {"y:0", "scope/halves:1"}});
    ASSERT_EQ(model.graph.inputs().size(), 1U);
    EXPECT_EQ(model.graph.inputs()[0]->name(), "x");
    EXPECT_EQ(model.graph.outputs()[0].name, "y");
    EXPECT_EQ(model.graph.outputs()[1].name, "scope/halves:1");
    EXPECT_EQ(model.graph.outputs()[0].value->producer()->name, "y");
    EXPECT_EQ(model.graph.outputs()[1].value->producer()->name, "scope/halves");
    const std::vector<Tensor> results = ref::run(model.graph, {Tensor::of<float>({4}, {1, 2, 3, 4})});
    EXPECT_EQ(results[0].to_doubles(), (std::vector<double>{-3, -4}));
    EXPECT_EQ(results[1].to_doubles(), (std::vector<double>{3, 4}));
}

TEST(TensorFlowLower, ConvolutionsLoseTheirTransposesBetweenEachOther) {
    TfGraph graph;
    graph.add("x", "Placeholder").attributes.set("dtype", kFloat);
    graph.find("x")->attributes.set("shape", TfShape({-1, 5, 5, 2}));
    graph.add_constant("w", Tensor::filled(DType::f32, {3, 3, 2, 2}, 1));
    TfList strides;
    strides.ints = {1, 1, 1, 1};
    TfAttributes attributes;
    attributes.set("strides", strides);
    attributes.set("padding", "SAME");
    graph.add("a", "Conv2D", {"x", "w"}, attributes);
    graph.add("b", "Conv2D", {"a", "w"}, attributes);
    const Model model = lower(graph);
    EXPECT_EQ(model.graph.count("Conv"), 2U);
    EXPECT_EQ(model.graph.count("Transpose"), 2U);  // one in, one out
    const Tensor y = ref::run(model.graph, {Tensor::filled(DType::f32, {1, 5, 5, 2}, 1)}).front();
    EXPECT_EQ(y.shape(), (Shape{1, 5, 5, 2}));
    EXPECT_EQ(y.to_doubles()[24], 2 * 9 * 2 * 9.0);  // the centre sees 3x3 full windows of 2 channels, twice
}

TEST(TensorFlowLower, UnknownOperatorsStayAndPartsRun) {
    const TfGraph graph =
        graph_of(kVector +
                 "node { name: 'a' op: 'NobodyKnows' input: 'x' }\n"
                 "node { name: 'b' op: 'Relu' input: 'a:1' attr { key: 'T' value { type: DT_FLOAT } } }\n"
                 "node { name: 'c' op: 'Neg' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }\n");
    const Model whole = lower(graph);
    EXPECT_EQ(whole.graph.count("NobodyKnows", kOpaqueDomain), 1U);
    try {
        ref::run(whole.graph, {Tensor::of<float>({1}, {1})});
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(
            error.what(),
            "operator 'a' (tensorflow.NobodyKnows): kilter cannot execute this operator: kilter has no such "
            "operator");
    }
    const Model part = lower(graph, {{"a:1"}, {"c"}});
    EXPECT_EQ(part.graph.inputs()[0]->name(), "a:1");
    EXPECT_EQ(ref::run(part.graph, {Tensor::of<float>({2}, {-1, 2})})[0].to_doubles(),
              (std::vector<double>{-0.0, -2}));
}

TEST(TensorFlowLower, ConditionalsChoose) {
    const TfGraph graph = graph_of(
        kVector +
        "node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_BOOL } } attr { key: 'shape' value { shape { } } } }\n"
        "node { name: 'id' op: 'Identity' input: 'p' }\n"
        "node { name: 's' op: 'Switch' input: 'x' input: 'id' }\n"
        "node { name: 'n' op: 'Neg' input: 's:1' attr { key: 'T' value { type: DT_FLOAT } } }\n"
        "node { name: 'm' op: 'Merge' input: 's' input: 'n' }\n");
    const Model model = lower(graph, {{"x", "p"}, {"m"}});
    const Tensor x = Tensor::of<float>({2}, {1, 2});
    EXPECT_EQ(ref::run(model.graph, {x, Tensor::scalar(true)})[0].to_doubles(),
              (std::vector<double>{-1, -2}));
    EXPECT_EQ(ref::run(model.graph, {x, Tensor::scalar(false)})[0].to_doubles(), (std::vector<double>{1, 2}));
}

TEST(TensorFlowLower, FunctionsAreInlined) {
    TfGraph graph = graph_of(
        kVector +
        "node { name: 'call' op: 'StatefulPartitionedCall' input: 'x' attr { key: 'f' value { func { name: 'outer' } } } }\n"
        "node { name: 'y' op: 'Identity' input: 'call:1' attr { key: 'T' value { type: DT_FLOAT } } }\n"
        "library { function { signature { name: 'outer' input_arg { name: 'a' type: DT_FLOAT }"
        "  output_arg { name: 'same' type: DT_FLOAT } output_arg { name: 'other' type: DT_FLOAT } }\n"
        "  node_def { name: 'in' op: 'PartitionedCall' input: 'a' attr { key: 'f' value { func { name: 'inner' } } } }\n"
        "  ret { key: 'same' value: 'a' } ret { key: 'other' value: 'in:output:0' } }\n"
        "function { signature { name: 'inner' input_arg { name: 'b' type: DT_FLOAT } output_arg { name: 'z' type: DT_FLOAT } }\n"
        "  node_def { name: 'neg' op: 'Neg' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }\n"
        "  ret { key: 'z' value: 'neg:y:0' } } }\n");
    inline_functions(graph);
    ASSERT_NE(graph.find("call/in/neg"), nullptr);
    const Model model = lower(graph, {{}, {"y"}});
    EXPECT_EQ(ref::run(model.graph, {Tensor::of<float>({1}, {3})})[0].to_doubles(),
              (std::vector<double>{-3}));
}

TEST(TensorFlowLower, ErrorsSayWhatIsMissing) {
    const TfGraph graph = graph_of(
        kVector + "node { name: 'y' op: 'Relu' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }\n");
    EXPECT_EQ(lowering_error(graph, {{}, {"z"}}), "there is no node 'z', which was given as output");
    EXPECT_EQ(lowering_error(graph, {{"q"}, {}}), "there is no node 'q', which was given as input");
    EXPECT_EQ(lowering_error(graph, {{"y:3"}, {"y"}}),
              "the outputs need placeholder 'x', which is not among the inputs");
    EXPECT_EQ(lowering_error(graph, {{"^x"}, {"y"}}), "input '^x' names no tensor");
}

TEST(TensorFlowSummary, PrintsTheLinesOfTheOldTool) {
    const TfGraph graph = graph_of(
        kVector +
        "node { name: 'a' op: 'Relu' input: 'x' }\nnode { name: 'b' op: 'Relu' input: 'a' }\nnode { name: 'c' op: 'NoOp' }\n");
    EXPECT_EQ(summarize(graph),
              "Found  1  possible inputs: \n"
              "(name=x, type=float(1), shape=[?])\n"
              "Found  1  possible outputs: \n"
              "(name=b, op=Relu)\n"
              "Op types used: 2  Relu , 1  NoOp , 1  Placeholder , \n");
}

}  // namespace
}  // namespace kilter::tensorflow
