#include "passes/expand_gradient.h"

#include "kilter/base/error.h"
#include "passes/pass_test.h"

namespace kilter::expand_gradient_test {

// y(a, b) and its derivatives, as a model spells them.
Model gradient_model(const std::function<Value*(Graph&, Value*, Value*)>& function,
                     const Dims& b_shape = {3}) {
    Model model;
    model.opsets = {{"", 21}, {std::string(kTrainingDomain), 1}};
    Graph& graph = model.graph;
    Value* a = graph.add_input("a", ValueType(DType::f32, {3}));
    Value* b = graph.add_input("b", ValueType(DType::f32, b_shape));
    Value* y = function(graph, a, b);
    graph.rename(y, "y");
    Attributes attributes;
    attributes.set("xs", std::vector<std::string>{"a", "b"});
    attributes.set("y", std::string("y"));
    std::vector<Value*> results{graph.add_value("dy_da"), graph.add_value("dy_db")};
    graph.add_node("Gradient", {a, b}, results, std::move(attributes), "gradient", kTrainingDomain);
    graph.add_output(y);
    for (Value* result : results) graph.add_output(result);
    return model;
}

TEST(ExpandGradient, AgreesWithDifferences) {
    using Function = std::function<Value*(Graph&, Value*, Value*)>;
    const std::vector<Function> functions{
        [](Graph& g, Value* a, Value* b) {
            return g.add("Mul", {g.add("Add", {a, b}), g.add("Sub", {a, b})});
        },
        [](Graph& g, Value* a, Value* b) {
            return g.add("Div", {g.add("Exp", {a}), g.add("Sqrt", {b})});
        },
        [](Graph& g, Value* a, Value* b) {
            return g.add("Tanh", {g.add("Mul", {g.add("Neg", {a}), b})});
        },
        [](Graph& g, Value* a, Value* b) {
            return g.add("Sigmoid", {g.add("Div", {a, g.add("Log", {b})})});
        },
        [](Graph& g, Value* a, Value*) {
            return g.add("Mul", {a, a});
        }};
    for (const Function& function : functions) {
        Model model = gradient_model(function);
        canonicalize(model);
        const std::vector<Tensor> at{Tensor::of<float>({3}, {0.3F, -0.8F, 1.1F}),
                                     Tensor::of<float>({3}, {2.2F, 3.1F, 1.7F})};
        const std::vector<Tensor> results = ref::run(model.graph, at);
        for (size_t input = 0; input < 2; ++input) {
            constexpr float kStep = 1e-2F;
            std::vector<Tensor> up{at[0].clone(), at[1].clone()};
            std::vector<Tensor> down{at[0].clone(), at[1].clone()};
            for (float& value : up[input].as_mutable<float>()) value += kStep;
            for (float& value : down[input].as_mutable<float>()) value -= kStep;
            const Tensor above = ref::run(model.graph, up)[0];
            const Tensor below = ref::run(model.graph, down)[0];
            for (size_t i = 0; i < 3; ++i)
                EXPECT_NEAR(results[1 + input].as<float>()[i],
                            (above.as<float>()[i] - below.as<float>()[i]) / (2 * kStep), 2e-3);
        }
    }
}

TEST(ExpandGradient, RefusesWhatItCannotFollow) {
    Model broadcasting = gradient_model(
        [](Graph& g, Value* a, Value* b) {
            return g.add("Mul", {a, b});
        },
        {1});
    EXPECT_THROW(canonicalize(broadcasting), Error);
    Model unknown = gradient_model([](Graph& g, Value* a, Value* b) {
        return g.add("Add", {g.add("Erf", {a}), b});
    });
    EXPECT_THROW(canonicalize(unknown), Error);
}

}  // namespace kilter::expand_gradient_test
