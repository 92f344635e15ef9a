// What the tests of passes share: random tensors, small builders, and the promise every pass makes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/ref/executor.h"
#include "kilter/graph/graph.h"
#include "kilter/passes/passes.h"
#include "passes/list.h"

namespace kilter::testing {

inline Tensor random_tensor(const Shape& shape, unsigned seed, float low = -1.0F, float high = 1.0F) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> numbers(low, high);
    Tensor tensor(DType::f32, shape);
    for (float& number : tensor.as_mutable<float>()) number = numbers(engine);
    return tensor;
}

inline Value* weights(Graph& graph, const Shape& shape, unsigned seed, float low = -1.0F, float high = 1.0F) {
    return graph.add_constant(random_tensor(shape, seed, low, high));
}

inline Value* scalar(Graph& graph, float number) { return graph.add_constant(Tensor::scalar<float>(number)); }

inline Value* ints(Graph& graph, const std::vector<int64_t>& numbers) {
    return graph.add_constant(Tensor::of<int64_t>({static_cast<int64_t>(numbers.size())}, numbers));
}

template <class T>
Attributes attribute(std::string_view name, T value) {
    Attributes attributes;
    attributes.set(name, std::move(value));
    return attributes;
}

inline Attributes ints_attribute(std::string_view name, std::vector<int64_t> numbers) {
    return attribute(name, std::move(numbers));
}

inline std::vector<Tensor> random_inputs(const Graph& graph, unsigned seed = 1) {
    std::vector<Tensor> inputs;
    for (const Value* input : graph.inputs()) {
        Shape shape;
        for (const Dim& dim : *input->type.shape) shape.push_back(dim.known() ? dim.value : 3);
        inputs.push_back(random_tensor(shape, seed++, -2.0F, 2.0F).converted(input->type.dtype));
    }
    return inputs;
}

inline void expect_near(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted,
                        double tolerance) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].shape(), wanted[i].shape()) << "output " << i;
        ASSERT_EQ(found[i].dtype(), wanted[i].dtype()) << "output " << i;
        const std::vector<double> a = found[i].to_doubles();
        const std::vector<double> b = wanted[i].to_doubles();
        for (size_t j = 0; j < a.size(); ++j)
            ASSERT_NEAR(a[j], b[j], tolerance * std::max(1.0, std::abs(b[j])))
                << "output " << i << ", element " << j;
    }
}

//! Every output keeps its name, its place and, up to rounding, its value; a second run finds nothing to do.
inline void expect_keeps_function(Graph& graph, PassFunction pass, double tolerance = 1e-5) {
    infer_types(graph);
    const std::vector<Tensor> inputs = random_inputs(graph);
    const std::vector<Tensor> before = ref::run(graph, inputs);
    std::vector<std::string> names;
    for (const Graph::Output& output : graph.outputs()) names.push_back(output.name);
    ASSERT_TRUE(pass(graph)) << "the pass found nothing to do:\n" << print(graph);
    infer_types(graph);
    ASSERT_NO_THROW(verify(graph)) << print(graph);
    expect_near(ref::run(graph, inputs), before, tolerance);
    for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(graph.outputs()[i].name, names[i]);
    EXPECT_FALSE(pass(graph)) << "the pass is not idempotent:\n" << print(graph);
}

inline void expect_untouched(Graph& graph, PassFunction pass) {
    infer_types(graph);
    const std::string before = print(graph);
    EXPECT_FALSE(pass(graph));
    EXPECT_EQ(print(graph), before);
}

inline Node* find_node(const Graph& graph, std::string_view op, std::string_view domain = {}) {
    for (const auto& node : graph.nodes())
        if (node->op() == op && node->domain() == domain) return node.get();
    return nullptr;
}

}  // namespace kilter::testing
