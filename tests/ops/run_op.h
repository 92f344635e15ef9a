// Runs or infers a single operator, for tests of operators.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/ref/executor.h"
#include "kilter/base/error.h"
#include "kilter/graph/graph.h"

namespace kilter::testing {

inline Attributes attributes(std::initializer_list<std::pair<const char*, AttributeValue>> entries) {
    Attributes result;
    for (const auto& [name, value] : entries) result.set(name, value);
    return result;
}

//! Empty tensors are absent inputs.
inline std::vector<Tensor> run_op(std::string_view op, const std::vector<Tensor>& inputs,
                                  const Attributes& attributes = {}, size_t outputs = 1,
                                  std::string_view domain = {}) {
    Graph graph;
    std::vector<Value*> arguments, results;
    std::vector<Tensor> given;
    for (const Tensor& tensor : inputs) {
        arguments.push_back(tensor.empty() ? nullptr
                                           : graph.add_input(graph.fresh_name("x"), ValueType::of(tensor)));
        if (!tensor.empty()) given.push_back(tensor);
    }
    for (size_t i = 0; i < outputs; ++i) {
        results.push_back(graph.add_value());
    }
    graph.add_node(op, arguments, results, attributes, "node", domain);
    for (Value* value : results) graph.add_output(value);
    return ref::run(graph, given);
}

//! The type of the first output for inputs of the given types.
inline ValueType infer_op(std::string_view op, const std::vector<ValueType>& inputs,
                          const Attributes& attributes = {}, std::string_view domain = {}) {
    Graph graph;
    std::vector<Value*> arguments;
    for (const ValueType& type : inputs) arguments.push_back(graph.add_input(graph.fresh_name("x"), type));
    Value* result = graph.add(op, arguments, attributes, "node", domain);
    graph.add_output(result);
    infer_types(graph);
    return result->type;
}

//! The message of the Error that `action` throws; a failure when it throws none.
template <class Action>
std::string error_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    ADD_FAILURE() << "no error was thrown";
    return {};
}

inline Tensor random_tensor(const Shape& shape, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    Tensor tensor(DType::f32, shape);
    for (float& value : tensor.as_mutable<float>()) value = normal(generator);
    return tensor;
}

inline void expect_near(const Tensor& found, const Tensor& expected, double tolerance = 1e-5) {
    ASSERT_EQ(found.shape(), expected.shape());
    const std::vector<double> a = found.to_doubles();
    const std::vector<double> b = expected.to_doubles();
    for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::fabs(b[i]))) << "element " << i;
}

}  // namespace kilter::testing
