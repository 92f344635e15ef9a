// canonicalize: every operator form of an older opset keeps its meaning in the canonical one.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "engine/ref/executor.h"
#include "kilter/base/error.h"
#include "kilter/passes/passes.h"

namespace kilter::upgrade_opset_test {

Attributes attributes(std::initializer_list<std::pair<const char*, AttributeValue>> entries) {
    Attributes result;
    for (const auto& [name, value] : entries) result.set(name, value);
    return result;
}

using Ints = std::vector<int64_t>;

Ints ints_of(const Graph& graph, const Value* value) {
    const Tensor* tensor = graph.constant(value);
    return tensor == nullptr ? Ints{} : tensor->to_ints();
}

// A model of one operator. Inputs without data are graph inputs "x", "x1", …; constants follow.
struct OneOperator {
    Model model;
    Node* node = nullptr;

    OneOperator(int64_t opset, const char* op, std::vector<ValueType> inputs, std::vector<Tensor> constants,
                Attributes given, size_t outputs = 1) {
        model.opsets = {{"", opset}};
        model.ir_version = 4;
        Graph& graph = model.graph;
        std::vector<Value*> arguments;
        for (size_t i = 0; i < inputs.size(); ++i)
            arguments.push_back(graph.add_input(i == 0 ? "x" : fmt::format("x{}", i), inputs[i]));
        for (const Tensor& tensor : constants)
            arguments.push_back(tensor.empty() ? nullptr : graph.add_constant(tensor));
        std::vector<Value*> results;
        for (size_t i = 0; i < outputs; ++i) results.push_back(graph.add_value(fmt::format("y{}", i)));
        node = graph.add_node(op, arguments, results, std::move(given), "node");
        for (Value* result : results) graph.add_output(result);
    }

    // The canonical model; `node` is the operator that makes the first output.
    OneOperator& upgraded() {
        canonicalize(model);
        node = model.graph.outputs()[0].value->producer();
        EXPECT_EQ(model.opset(), kCanonicalOpset);
        return *this;
    }
    const Graph& graph() const { return model.graph; }
    Ints ints(size_t input) const { return ints_of(model.graph, node->input(input)); }
    Tensor run(const Tensor& x) const { return ref::run(model.graph, {x})[0]; }
};

ValueType f32(Dims dims) { return {DType::f32, std::move(dims)}; }

Tensor ramp(const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(element_count(shape)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5F * static_cast<float>(i);
    return Tensor::of<float>(shape, values);
}

TEST(UpgradeOpset, ConstantsOfEveryForm) {
    const std::pair<const char*, AttributeValue> forms[] = {
        {"value", Tensor::of<float>({1}, {2})},
        {"value_float", 2.0F},
        {"value_int", int64_t{2}},
        {"value_string", std::string("two")},
        {"value_floats", std::vector<float>{2}},
        {"value_ints", Ints{2, 3}},
        {"value_strings", std::vector<std::string>{"two"}},
    };
    for (const auto& [name, value] : forms) {
        OneOperator one(13, "Constant", {}, {}, attributes({{name, value}}));
        canonicalize(one.model);
        EXPECT_TRUE(one.graph().nodes().empty()) << name;
        EXPECT_TRUE(one.graph().outputs()[0].value->is_constant()) << name;
    }
}

TEST(UpgradeOpset, ClipBoundsBecomeInputs) {
    OneOperator one(6, "Clip", {f32({4})}, {}, attributes({{"min", 0.25F}, {"max", 1.0F}}));
    one.upgraded();
    EXPECT_TRUE(one.node->attributes.empty());
    EXPECT_TRUE(identical(one.run(ramp({4})), Tensor::of<float>({4}, {0.25F, 0.5F, 1, 1})));
    OneOperator only_max(6, "Clip", {{DType::f16, {4}}}, {}, attributes({{"max", 1.0F}}));
    only_max.upgraded();
    EXPECT_EQ(only_max.node->input(1), nullptr);
    EXPECT_EQ(only_max.node->input(2)->type.dtype, DType::f16);
}

TEST(UpgradeOpset, PadsBecomeInputs) {
    OneOperator one(10, "Pad", {f32({2})}, {}, attributes({{"pads", Ints{1, 0}}, {"value", 7.0F}}));
    one.upgraded();
    EXPECT_EQ(one.ints(1), (Ints{1, 0}));
    EXPECT_TRUE(identical(one.run(ramp({2})), Tensor::of<float>({3}, {7, 0, 0.5F})));
    OneOperator oldest(1, "Pad", {f32({2})}, {}, attributes({{"paddings", Ints{0, 1}}}));
    EXPECT_EQ(oldest.upgraded().ints(1), (Ints{0, 1}));
}

TEST(UpgradeOpset, SliceBoundsBecomeInputs) {
    OneOperator one(9, "Slice", {f32({2, 3})}, {},
                    attributes({{"starts", Ints{1}}, {"ends", Ints{3}}, {"axes", Ints{1}}}));
    one.upgraded();
    EXPECT_TRUE(identical(one.run(ramp({2, 3})), Tensor::of<float>({2, 2}, {0.5F, 1, 2, 2.5F})));
}

TEST(UpgradeOpset, AxesBecomeInputs) {
    for (const auto& [op, opset, shape] :
         std::vector<std::tuple<const char*, int64_t, Dims>>{{"Squeeze", 11, {1, 3}},
                                                             {"Unsqueeze", 11, {2, 3}},
                                                             {"ReduceSum", 11, {2, 3}},
                                                             {"ReduceMax", 17, {2, 3}},
                                                             {"ReduceMean", 13, {2, 3}},
                                                             {"ReduceL2", 1, {2, 3}}}) {
        OneOperator one(opset, op, {f32(shape)}, {}, attributes({{"axes", Ints{0}}}));
        one.upgraded();
        EXPECT_EQ(one.ints(1), Ints{0}) << op;
        EXPECT_FALSE(one.node->attributes.has("axes")) << op;
    }
    OneOperator newer(13, "ReduceSum", {f32({2, 3})}, {Tensor::of<int64_t>({1}, {1})}, {});
    EXPECT_EQ(newer.upgraded().ints(1), Ints{1});
}

TEST(UpgradeOpset, SplitSizesBecomeInputs) {
    OneOperator sizes(11, "Split", {f32({3})}, {}, attributes({{"split", Ints{1, 2}}}), 2);
    EXPECT_EQ(sizes.upgraded().ints(1), (Ints{1, 2}));
    OneOperator equal(13, "Split", {f32({4})}, {}, {}, 2);
    EXPECT_EQ(equal.upgraded().node->attributes.get_int("num_outputs"), 2);
    EXPECT_EQ(ref::run(equal.model.graph, {ramp({4})})[1].shape(), Shape{2});
}

TEST(UpgradeOpset, TopKTakesKAsInput) {
    OneOperator one(9, "TopK", {f32({4})}, {}, attributes({{"k", int64_t{2}}}), 2);
    EXPECT_EQ(one.upgraded().ints(1), Ints{2});
}

TEST(UpgradeOpset, DropoutTakesItsRatioAsInput) {
    OneOperator one(7, "Dropout", {f32({2})}, {}, attributes({{"ratio", 0.25F}}));
    one.upgraded();
    EXPECT_EQ(one.graph().constant(one.node->input(1))->to_doubles(), std::vector<double>{0.25});
    EXPECT_EQ(one.node->input(2), nullptr);
}

TEST(UpgradeOpset, SoftmaxKeepsItsTwoDimensionalMeaning) {
    const Tensor x = ramp({2, 2, 3});
    OneOperator flat(11, "Softmax", {f32({2, 2, 3})}, {}, {});  // axis 1: over the 6 last elements together
    flat.upgraded();
    const Tensor result = flat.run(x);
    EXPECT_EQ(result.shape(), x.shape());
    double sum = 0;
    for (int i = 0; i < 6; ++i) sum += result.as<float>()[static_cast<size_t>(i)];
    EXPECT_NEAR(sum, 1, 1e-6);

    OneOperator last(11, "Softmax", {f32({Dim("batch"), 3})}, {}, {});
    EXPECT_EQ(last.upgraded().node->op(), "Softmax");
    EXPECT_EQ(last.node->attributes.get_int("axis"), 1);
    OneOperator pooled(11, "LogSoftmax", {f32({2, 5, 1, 1})}, {}, attributes({{"axis", int64_t{1}}}));
    EXPECT_EQ(pooled.upgraded().graph().nodes().size(), 1U);
    OneOperator dynamic(11, "Hardmax", {f32({Dim("batch"), Dim(), 3})}, {}, {});
    EXPECT_EQ(dynamic.upgraded().node->op(), "Reshape");
    EXPECT_EQ(dynamic.node->name, "node");
    OneOperator newest(13, "Softmax", {f32({2, 2, 3})}, {}, {});
    EXPECT_EQ(newest.upgraded().node->op(), "Softmax");
}

TEST(UpgradeOpset, UpsampleBecomesResize) {
    const Tensor scales = Tensor::of<float>({4}, {1, 1, 2, 2});
    OneOperator seven(7, "Upsample", {f32({1, 1, 2, 2})}, {},
                      attributes({{"scales", std::vector<float>{1, 1, 2, 2}}}));
    OneOperator nine(9, "Upsample", {f32({1, 1, 2, 2})}, {scales},
                     attributes({{"mode", std::string("nearest")}}));
    OneOperator ten(10, "Resize", {f32({1, 1, 2, 2})}, {scales},
                    attributes({{"mode", std::string("nearest")}}));
    for (OneOperator* one : {&seven, &nine, &ten}) {
        one->upgraded();
        EXPECT_EQ(one->node->op(), "Resize");
        EXPECT_EQ(one->node->attributes.get_string("coordinate_transformation_mode"), "asymmetric");
        EXPECT_EQ(one->node->attributes.get_string("nearest_mode"), "floor");
        const Tensor result = one->run(ramp({1, 1, 2, 2}));
        ASSERT_EQ(result.shape(), (Shape{1, 1, 4, 4}));
        EXPECT_EQ(result.as<float>()[1], 0.0F);
        EXPECT_EQ(result.as<float>()[2], 0.5F);
    }
}

TEST(UpgradeOpset, ResizeForgetsEmptyInputs) {
    OneOperator one(
        11, "Resize", {f32({1, 1, 2, 2})},
        {Tensor(DType::f32, {0}), Tensor(DType::f32, {0}), Tensor::of<int64_t>({4}, {1, 1, 4, 4})}, {});
    one.upgraded();
    EXPECT_EQ(one.node->input(1), nullptr);
    EXPECT_EQ(one.node->input(2), nullptr);
    EXPECT_EQ(one.ints(3), (Ints{1, 1, 4, 4}));
}

TEST(UpgradeOpset, GroupNormalizationGetsOneScalePerChannel) {
    const Tensor scale = Tensor::of<float>({2}, {1, 10});
    const Tensor bias = Tensor::of<float>({2}, {0, 5});
    for (const Dim& channels : {Dim(4), Dim("channels")}) {
        OneOperator one(18, "GroupNormalization", {f32({1, channels, 2})}, {scale, bias},
                        attributes({{"num_groups", int64_t{2}}}));
        one.upgraded();
        const Tensor result = one.run(ramp({1, 4, 2}));
        EXPECT_LT(result.as<float>()[1], 0.0F);
        EXPECT_NEAR(result.as<float>()[4], 5 + 10 * result.as<float>()[0], 1e-3);
    }
}

TEST(UpgradeOpset, BatchNormalizationLosesItsTrainingOutputs) {
    const Tensor one_per_channel = Tensor::of<float>({2}, {1, 2});
    const std::vector<Tensor> statistics(4, one_per_channel);
    OneOperator one(7, "BatchNormalization", {f32({1, 2, 3})}, statistics,
                    attributes({{"spatial", int64_t{1}}}));
    one.model.graph.set_output(*one.node, 3, one.model.graph.add_value("saved_mean"));
    one.upgraded();
    EXPECT_EQ(one.node->outputs().size(), 1U);
    EXPECT_EQ(one.model.graph.find("saved_mean"), nullptr);
    OneOperator training(7, "BatchNormalization", {f32({1, 2, 3})}, statistics, {}, 2);
    EXPECT_THROW(canonicalize(training.model), Error);
    OneOperator spatial(7, "BatchNormalization", {f32({1, 2, 3})}, statistics,
                        attributes({{"spatial", int64_t{0}}}));
    EXPECT_THROW(canonicalize(spatial.model), Error);
}

TEST(UpgradeOpset, OldBroadcastingFollowsItsAxis) {
    const Tensor b = Tensor::of<float>({2}, {10, 20});
    OneOperator one(6, "Add", {f32({2, 3})}, {b},
                    attributes({{"broadcast", int64_t{1}}, {"axis", int64_t{0}}}));
    one.upgraded();
    EXPECT_TRUE(one.node->attributes.empty());
    EXPECT_TRUE(
        identical(one.run(ramp({2, 3})), Tensor::of<float>({2, 3}, {10, 10.5F, 11, 21.5F, 22, 22.5F})));
    OneOperator unknown(6, "Add", {{}}, {b}, attributes({{"broadcast", int64_t{1}}, {"axis", int64_t{0}}}));
    EXPECT_THROW(canonicalize(unknown.model), Error);
    OneOperator slope(6, "PRelu", {f32({1, 2, 2})}, {Tensor::of<float>({2}, {2, 3})}, {});
    const Tensor minus = Tensor::of<float>({1, 2, 2}, {-1, -1, -1, -1});
    EXPECT_TRUE(identical(slope.upgraded().run(minus), Tensor::of<float>({1, 2, 2}, {-2, -2, -3, -3})));
}

TEST(UpgradeOpset, NamesAndDefaultsThatChanged) {
    OneOperator scatter(9, "Scatter", {f32({3})},
                        {Tensor::of<int64_t>({1}, {1}), Tensor::of<float>({1}, {9})}, {});
    EXPECT_EQ(scatter.upgraded().node->op(), "ScatterElements");
    OneOperator roi(10, "RoiAlign", {f32({1, 1, 4, 4})},
                    {Tensor::of<float>({1, 4}, {0, 0, 2, 2}), Tensor::of<int64_t>({1}, {0})}, {});
    EXPECT_EQ(roi.upgraded().node->attributes.get_string("coordinate_transformation_mode"),
              "output_half_pixel");
    OneOperator cast(1, "Cast", {f32({2})}, {}, attributes({{"to", std::string("INT64")}}));
    EXPECT_EQ(cast.upgraded().node->attributes.get_int("to"), 7);
    OneOperator grid(16, "GridSample", {f32({1, 1, 4, 4}), f32({1, 2, 2, 2})}, {},
                     attributes({{"mode", std::string("bicubic")}}));
    EXPECT_EQ(grid.upgraded().node->attributes.get_string("mode"), "cubic");
    OneOperator reshape(1, "Reshape", {f32({4})}, {}, attributes({{"shape", Ints{2, 2}}}));
    EXPECT_EQ(reshape.upgraded().ints(1), (Ints{2, 2}));
    OneOperator dft(17, "DFT", {f32({1, 4, 1})}, {}, {});
    EXPECT_EQ(dft.upgraded().ints(2), Ints{1});
    OneOperator gemm(6, "Gemm", {f32({1, 2})}, {ramp({2, 2}), ramp({2})},
                     attributes({{"broadcast", int64_t{1}}}));
    EXPECT_TRUE(gemm.upgraded().node->attributes.empty());
}

TEST(UpgradeOpset, SaysWhichOldFormsItRefuses) {
    OneOperator tile(1, "Tile", {f32({2})}, {}, {});
    try {
        canonicalize(tile.model);
        FAIL() << "Tile of opset 1 was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find("operator 'node' (Tile), opset 1: this old form"), 0U)
            << error.what();
    }
}

TEST(UpgradeOpset, NewerOpsetsAndOtherDomainsStayAsTheyAre) {
    OneOperator newer(24, "Clip", {f32({2})}, {}, {});
    canonicalize(newer.model);
    EXPECT_EQ(newer.model.opset(), 24);
    Model model;
    model.opsets = {{"com.example", 1}, {"ai.onnx", 9}};
    Value* x = model.graph.add_input("x", f32({2}));
    Value* y = model.graph.add("Clip", {x}, attributes({{"min", 0.0F}}), "theirs", "com.example");
    model.graph.add_output(model.graph.add("Relu", {y}, {}, "ours", "ai.onnx"), "out");
    canonicalize(model);
    EXPECT_TRUE(model.graph.nodes()[0]->attributes.has("min"));
    EXPECT_TRUE(model.graph.nodes()[1]->is("Relu"));
    EXPECT_EQ(model.opset("com.example"), 1);
    EXPECT_EQ(model.opset(), kCanonicalOpset);
}

TEST(UpgradeOpset, ReachesSubGraphs) {
    Model model;
    model.opsets = {{"", 9}};
    Value* flag = model.graph.add_input("flag", {DType::boolean, {}});
    Value* x = model.graph.add_input("x", f32({2, 3}));
    auto body = std::make_shared<Graph>();
    Value* seen = body->add_capture("x", x);
    body->add_output(body->add("Slice", {seen}, attributes({{"starts", Ints{0}}, {"ends", Ints{1}}})));
    auto other = std::make_shared<Graph>();
    other->add_output(other->add("Constant", {}, attributes({{"value", ramp({1, 3})}})));
    model.graph.add_output(
        model.graph.add("If", {flag}, attributes({{"then_branch", body}, {"else_branch", other}})), "y");
    canonicalize(model);
    EXPECT_EQ(ints_of(*body, body->nodes()[0]->input(1)), Ints{0});
    EXPECT_TRUE(other->nodes().empty());
    EXPECT_TRUE(identical(*other->constant(other->outputs()[0].value), ramp({1, 3})));
}

// A running sum over the rows of every image of a batch.
TEST(UpgradeOpset, ScanOfOpset8RunsOverTheBatch) {
    auto body = std::make_shared<Graph>();
    Value* sum = body->add_input("sum", f32({2}));
    Value* next = body->add_input("next", f32({2}));
    Value* total = body->add("Add", {sum, next});
    body->add_output(total, "total");
    body->add_output(body->add("Identity", {total}), "each");
    Model model;
    model.opsets = {{"", 8}};
    Graph& graph = model.graph;
    Value* initial = graph.add_input("initial", f32({2, 2}));
    Value* x = graph.add_input("x", f32({2, 3, 2}));
    std::vector<Value*> results{graph.add_value("y"), graph.add_value("z")};
    graph.add_node("Scan", {nullptr, initial, x}, results,
                   attributes({{"body", body}, {"num_scan_inputs", int64_t{1}}}));
    for (Value* result : results) graph.add_output(result);
    canonicalize(model);
    const std::vector<Tensor> found =
        ref::run(model.graph, {Tensor::of<float>({2, 2}, {0, 0, 10, 20}),
                               Tensor::of<float>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1})});
    EXPECT_TRUE(identical(found[0], Tensor::of<float>({2, 2}, {9, 12, 13, 23})));
    EXPECT_TRUE(
        identical(found[1], Tensor::of<float>({2, 3, 2}, {1, 2, 4, 6, 9, 12, 11, 21, 12, 22, 13, 23})));
}

}  // namespace kilter::upgrade_opset_test
