// What the data-driven cases do not reach: control flow, packed and string elements, hostile sizes,
// exotic integers.
#include <gtest/gtest.h>

#include <limits>

#include "engine/ref/executor.h"
#include "kilter/base/error.h"
#include "kilter/graph/graph.h"

namespace kilter::kernel_test {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

Attributes with(std::string_view name, AttributeValue value) {
    Attributes attributes;
    attributes.set(name, std::move(value));
    return attributes;
}

Tensor run(std::string_view op, const std::vector<Tensor>& inputs, Attributes attributes = {}) {
    Graph graph;
    std::vector<Value*> values;
    std::vector<Tensor> given;
    for (const Tensor& tensor : inputs) {
        values.push_back(tensor.empty() ? nullptr
                                        : graph.add_input(graph.fresh_name("x"), ValueType::of(tensor)));
        if (!tensor.empty()) given.push_back(tensor);
    }
    graph.add_output(graph.add(op, values, std::move(attributes)), "y");
    infer_types(graph);
    return ref::run(graph, given)[0];
}

Tensor ints(const std::vector<int64_t>& values) {
    return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

TEST(IntegerArithmetic, NeverTraps) {
    const Tensor a = ints({7, -7, 5, kLowest, kLowest});
    const Tensor b = ints({2, 2, 0, -1, 0});
    EXPECT_EQ(run("Div", {a, b}).to_ints(), (std::vector<int64_t>{3, -3, 0, kLowest, 0}));
    EXPECT_EQ(run("Mod", {a, b}).to_ints(), (std::vector<int64_t>{1, 1, 0, 0, 0}));
    EXPECT_EQ(run("Mod", {a, b}, with("fmod", int64_t{1})).to_ints(), (std::vector<int64_t>{1, -1, 0, 0, 0}));
    EXPECT_EQ(run("Abs", {ints({kLowest})}).to_ints()[0], kLowest);
    EXPECT_EQ(run("Add", {ints({std::numeric_limits<int64_t>::max()}), ints({1})}).to_ints()[0], kLowest);
}

TEST(IntegerArithmetic, IsExactBeyondDoubles) {
    const int64_t large = (int64_t{1} << 60) + 1;
    EXPECT_EQ(run("Sub", {ints({large}), ints({1})}).to_ints()[0], large - 1);
    EXPECT_EQ(run("Pow", {ints({3}), ints({38})}).to_ints()[0], 1350851717672992089);
    EXPECT_EQ(run("ReduceMax", {ints({large, large - 1})}).to_ints()[0], large);
    const Tensor top = Tensor::of<uint64_t>({2}, {std::numeric_limits<uint64_t>::max(), 3});
    EXPECT_EQ(run("Div", {top, Tensor::of<uint64_t>({1}, {2})}).as<uint64_t>()[0],
              std::numeric_limits<uint64_t>::max() / 2);
    EXPECT_TRUE(run("Greater", {top, Tensor::of<uint64_t>({1}, {5})}).as<bool>()[0]);
}

TEST(Movement, MovesPackedElements) {
    const Tensor x = ints({1, -2, 3, -4, 5, -6}).converted(DType::i4).reshaped({2, 3});
    EXPECT_EQ(run("Transpose", {x}).to_ints(), (std::vector<int64_t>{1, -4, -2, 5, 3, -6}));
    EXPECT_EQ(run("Slice", {x, ints({1}), ints({3}), ints({1})}).to_ints(),
              (std::vector<int64_t>{-2, 3, 5, -6}));
    EXPECT_EQ(run("Concat", {x, x}, with("axis", int64_t{0})).to_ints().size(), 12U);
}

TEST(Movement, MovesStrings) {
    const Tensor words = Tensor::strings({3}, {"a", "b", "c"});
    EXPECT_EQ(run("Gather", {words, ints({2, -3})}).as_strings(), (std::vector<std::string>{"c", "a"}));
    EXPECT_EQ(
        run("Concat", {words, Tensor::strings({1}, {"d"})}, with("axis", int64_t{0})).as_strings().back(),
        "d");
}

TEST(Movement, ConcatenatesPartsOfDifferentLengths) {
    const Tensor a = ints({1, 2, 3, 4}).reshaped({2, 2});
    const Tensor b = ints({5, 6}).reshaped({2, 1});
    EXPECT_EQ(run("Concat", {a, b}, with("axis", int64_t{1})).to_ints(),
              (std::vector<int64_t>{1, 2, 5, 3, 4, 6}));
    EXPECT_THROW(run("Concat", {a, b}, with("axis", int64_t{0})), Error);
}

TEST(Movement, SlicesBackwardsAndClamps) {
    const Tensor x = ints({0, 1, 2, 3, 4});
    const int64_t far = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(run("Slice", {x, ints({far}), ints({kLowest}), ints({0}), ints({-2})}).to_ints(),
              (std::vector<int64_t>{4, 2, 0}));
    EXPECT_EQ(run("Slice", {x, ints({3}), ints({1}), ints({0}), ints({1})}).size(), 0);
}

TEST(Kernels, RefuseAbsurdSizes) {
    const int64_t huge = int64_t{1} << 60;
    EXPECT_THROW(run("ConstantOfShape", {ints({huge})}), Error);
    EXPECT_THROW(run("ConstantOfShape", {ints({huge, huge})}), Error);
    EXPECT_THROW(run("ConstantOfShape", {ints({-1})}), Error);
    EXPECT_THROW(run("Expand", {ints({1}), ints({huge})}), Error);
    EXPECT_THROW(run("Tile", {ints({1, 2}), ints({huge})}), Error);
    EXPECT_THROW(run("Pad", {ints({1, 2}), ints({huge, 0})}), Error);
    EXPECT_THROW(
        run("Range", {Tensor::scalar<int64_t>(0), Tensor::scalar<int64_t>(huge), Tensor::scalar<int64_t>(1)}),
        Error);
    EXPECT_THROW(run("Range", {Tensor::scalar<float>(0), Tensor::scalar<float>(1), Tensor::scalar<float>(0)}),
                 Error);
    EXPECT_THROW(run("OneHot", {ints({1}), ints({huge}), ints({0, 1})}), Error);
    EXPECT_THROW(run("Gather", {ints({1, 2}), ints({2})}), Error);
    EXPECT_THROW(run("GatherND", {ints({1, 2}), ints({5})}), Error);
    EXPECT_THROW(run("Reshape", {ints({1, 2}), ints({huge, huge})}), Error);
}

// Sums 1 + 2 + … while the total stays below a captured limit, and records every total.
Graph summing_loop(bool with_trips, bool with_condition) {
    Graph graph;
    Value* trips = graph.add_input("trips", {DType::i64, {}});
    Value* condition = graph.add_input("condition", {DType::boolean, {}});
    Value* limit = graph.add_input("limit", {DType::i64, {}});
    Value* zero = graph.add_constant(Tensor::scalar<int64_t>(0), "zero");
    auto body = std::make_shared<Graph>();
    Value* trip = body->add_input("trip", {DType::i64, {}});
    body->add_input("go", {DType::boolean, {}});
    Value* total = body->add_input("total", {DType::i64, {}});
    Value* captured = body->add_capture("limit", limit);
    Value* next =
        body->add("Add", {body->add("Add", {total, trip}), body->add_constant(Tensor::scalar<int64_t>(1))});
    body->add_output(body->add("Less", {next, captured}), "goes_on");
    body->add_output(next, "next");
    body->add_output(body->add("Identity", {next}), "record");
    Value* sum = graph.add_value("sum");
    Value* records = graph.add_value("records");
    graph.add_node("Loop", {with_trips ? trips : nullptr, with_condition ? condition : nullptr, zero},
                   {sum, records}, with("body", body), "loop");
    graph.add_output(sum);
    graph.add_output(records);
    infer_types(graph);
    verify(graph);
    return graph;
}

TEST(Loop, StopsAtTheTripCountOrTheCondition) {
    const auto results = [](bool with_trips, bool with_condition, int64_t trips, bool condition,
                            int64_t limit) {
        const Graph graph = summing_loop(with_trips, with_condition);
        EXPECT_EQ(to_string(graph.outputs()[1].value->type), "i64[?]");
        const std::vector<Tensor> outputs =
            ref::run(graph, {Tensor::scalar<int64_t>(trips), Tensor::scalar<bool>(condition),
                             Tensor::scalar<int64_t>(limit)});
        return std::pair(outputs[0].to_ints()[0], outputs[1].to_ints());
    };
    using Records = std::vector<int64_t>;
    EXPECT_EQ(results(true, false, 4, true, 3),
              std::pair(int64_t{10}, (Records{1, 3, 6, 10})));  // body's condition ignored
    EXPECT_EQ(results(false, true, 0, true, 6), std::pair(int64_t{6}, (Records{1, 3, 6})));
    EXPECT_EQ(results(true, true, 2, true, 100), std::pair(int64_t{3}, (Records{1, 3})));
    EXPECT_EQ(results(true, true, 5, false, 100), std::pair(int64_t{0}, Records{}));
    EXPECT_EQ(results(true, false, 0, true, 100), std::pair(int64_t{0}, Records{}));
    EXPECT_THROW(results(false, false, 0, true, 100), Error);
}

TEST(If, RunsOneBranchAndCapturesValues) {
    Graph graph;
    Value* condition = graph.add_input("condition", {DType::boolean, {}});
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 2}});
    const auto branch = [&](std::string_view op) {
        auto body = std::make_shared<Graph>();
        body->add_output(body->add(op, {body->add_capture("x", x)}), "result");
        return body;
    };
    Attributes attributes = with("then_branch", branch("Neg"));
    attributes.set("else_branch", branch("Abs"));
    Value* y = graph.add_value("y");
    graph.add_node("If", {condition}, {y}, attributes);
    graph.add_output(y);
    infer_types(graph);
    EXPECT_EQ(to_string(y->type), "f32[batch, 2]");
    const Tensor data = Tensor::of<float>({1, 2}, {-1, 2});
    EXPECT_EQ(ref::run(graph, {Tensor::scalar<bool>(true), data})[0].to_doubles(),
              (std::vector<double>{1, -2}));
    EXPECT_EQ(ref::run(graph, {Tensor::scalar<bool>(false), data})[0].to_doubles(),
              (std::vector<double>{1, 2}));
}

TEST(Scan, WalksAxesInBothDirections) {
    Graph graph;
    Value* start = graph.add_input("start", {DType::f32, {2}});
    Value* x = graph.add_input("x", {DType::f32, {2, Dim("steps")}});
    auto body = std::make_shared<Graph>();
    Value* total = body->add_input("total", {});
    Value* slice = body->add_input("slice", {});
    Value* sum = body->add("Add", {total, slice});
    body->add_output(sum, "sum");
    body->add_output(body->add("Identity", {sum}), "record");
    Attributes attributes = with("body", body);
    attributes.set("num_scan_inputs", int64_t{1});
    attributes.set("scan_input_axes", std::vector<int64_t>{-1});
    attributes.set("scan_input_directions", std::vector<int64_t>{1});
    attributes.set("scan_output_axes", std::vector<int64_t>{1});
    std::vector<Value*> outputs{graph.add_value("end"), graph.add_value("records")};
    graph.add_node("Scan", {start, x}, outputs, attributes);
    for (Value* output : outputs) graph.add_output(output);
    infer_types(graph);
    EXPECT_EQ(to_string(outputs[1]->type), "f32[2, steps]");
    const std::vector<Tensor> results =
        ref::run(graph, {Tensor::of<float>({2}, {0, 10}), Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})});
    EXPECT_EQ(results[0].to_doubles(), (std::vector<double>{6, 25}));
    EXPECT_EQ(results[1].to_doubles(), (std::vector<double>{3, 5, 6, 16, 21, 25}));
}

TEST(Random, IsRepeatableWithASeed) {
    Attributes attributes = with("seed", 3.0F);
    attributes.set("shape", std::vector<int64_t>{4, 5});
    const Tensor first = run("RandomNormal", {}, attributes);
    EXPECT_EQ(first.shape(), (Shape{4, 5}));
    EXPECT_TRUE(identical(first, run("RandomNormal", {}, attributes)));
    attributes.set("low", 2.0F);
    attributes.set("high", 3.0F);
    for (const double value : run("RandomUniform", {}, attributes).to_doubles()) {
        EXPECT_GE(value, 2);
        EXPECT_LE(value, 3);
    }
}

TEST(Quantization, SaturatesAndRoundsHalfToEven) {
    const Tensor x = Tensor::of<float>({6}, {0.5F, 1.5F, 2.5F, -0.5F, 1000, -1000});
    const Tensor scale = Tensor::scalar<float>(1);
    EXPECT_EQ(run("QuantizeLinear", {x, scale, Tensor::scalar<int8_t>(0)}).to_ints(),
              (std::vector<int64_t>{0, 2, 2, 0, 127, -128}));
    EXPECT_EQ(run("QuantizeLinear", {x, scale, Tensor::scalar<uint8_t>(10)}).to_ints(),
              (std::vector<int64_t>{10, 12, 12, 10, 255, 0}));
    EXPECT_EQ(run("QuantizeLinear", {x, scale, Tensor::filled(DType::i4, {}, 0)}).to_ints(),
              (std::vector<int64_t>{0, 2, 2, 0, 7, -8}));
}

TEST(Quantization, ChecksTheGranularity) {
    const Tensor x = Tensor::of<float>({2, 3}, {0, 0, 0, 0, 0, 0});
    EXPECT_NO_THROW(run("QuantizeLinear", {x, Tensor::of<float>({3}, {1, 1, 1})}));
    EXPECT_THROW(run("QuantizeLinear", {x, Tensor::of<float>({2}, {1, 1})}), Error);
    EXPECT_THROW(run("QuantizeLinear", {x, Tensor::of<float>({3}, {1, 1, 1})}, with("axis", int64_t{5})),
                 Error);
}

}  // namespace kilter::kernel_test
