#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/ref/executor.h"
#include "kilter/base/error.h"
#include "kilter/passes/passes.h"

namespace kilter::inline_function_test {

ValueType f32(Dims dims) { return {DType::f32, std::move(dims)}; }

Function function(const char* name) {
    Function made;
    made.domain = "local";
    made.name = name;
    made.opsets = {{"", 21}};
    return made;
}

// Leak(a) = LeakyRelu(a, alpha = slope), slope 0.5 unless given.
Function leak() {
    Function made = function("Leak");
    made.attributes = {"unused"};
    made.defaults.set("slope", 0.5F);
    Attributes attributes;
    attributes.set("alpha", AttributeReference{"slope", 1});
    Value* a = made.body.add_input("a", {});
    made.body.add_output(made.body.add("LeakyRelu", {a}, std::move(attributes), "leaky"), "b");
    return made;
}

Model model_of(const char* op, Attributes attributes = {}, std::vector<std::string> outputs = {"y"}) {
    Model model;
    model.opsets = {{"", 21}, {"local", 1}};
    Value* x = model.graph.add_input("x", f32({2}));
    std::vector<Value*> results;
    for (const std::string& name : outputs) results.push_back(model.graph.add_value(name));
    model.graph.add_node(op, {x}, results, std::move(attributes), "call", "local");
    for (Value* result : results) model.graph.add_output(result);
    return model;
}

std::vector<double> run(const Model& model, size_t output = 0) {
    return ref::run(model.graph, {Tensor::of<float>({2}, {-4, 4})})[output].to_doubles();
}

TEST(InlineFunction, BindsAttributesOfTheCallOrTheirDefaults) {
    Model by_default = model_of("Leak");
    by_default.functions.push_back(leak());
    canonicalize(by_default);
    EXPECT_TRUE(by_default.functions.empty());
    EXPECT_EQ(by_default.graph.nodes()[0]->name, "call/leaky");
    EXPECT_EQ(run(by_default), (std::vector<double>{-2, 4}));

    Attributes given;
    given.set("slope", 0.25F);
    Model by_call = model_of("Leak", given);
    by_call.functions.push_back(leak());
    canonicalize(by_call);
    EXPECT_EQ(run(by_call), (std::vector<double>{-1, 4}));

    Model absent = model_of("Leak");
    absent.functions.push_back(leak());
    absent.functions[0].defaults.erase("slope");
    canonicalize(absent);
    EXPECT_FALSE(absent.graph.nodes()[0]->attributes.has("alpha"));
}

TEST(InlineFunction, NestedFunctionsOfOtherOpsets) {
    Function twice = function("Twice");
    twice.opsets = {{"", 9}, {"local", 1}, {"com.example", 3}};
    Value* a = twice.body.add_input("a", {});
    Attributes bounds;
    bounds.set("max", 3.0F);
    Value* once = twice.body.add("Leak", {a}, {}, "first", "local");
    Value* again = twice.body.add("Leak", {once}, {}, "second", "local");
    twice.body.add_output(twice.body.add("Clip", {again}, std::move(bounds)), "b");
    Model model = model_of("Twice");
    model.functions.push_back(std::move(twice));
    model.functions.push_back(leak());
    canonicalize(model);
    EXPECT_EQ(run(model), (std::vector<double>{-1, 3}));
    EXPECT_EQ(model.opset("com.example"), 3);
}

TEST(InlineFunction, PassesThroughAndSharesResults) {
    Function both = function("Both");
    Value* a = both.body.add_input("a", {});
    Value* b = both.body.add("Relu", {a});
    both.body.add_output(b, "b");
    both.body.add_output(b, "same");
    both.body.add_output(a, "input");
    Model model = model_of("Both", {}, {"y", "z", "w"});
    model.functions.push_back(std::move(both));
    canonicalize(model);
    EXPECT_EQ(run(model, 0), (std::vector<double>{0, 4}));
    EXPECT_EQ(run(model, 1), (std::vector<double>{0, 4}));
    EXPECT_EQ(run(model, 2), (std::vector<double>{-4, 4}));
    EXPECT_EQ(model.graph.outputs()[2].name, "w");
}

TEST(InlineFunction, SubGraphsSeeTheValuesOfTheCall) {
    Function choose = function("Choose");
    Value* a = choose.body.add_input("a", {});
    Value* optional = choose.body.add_input("optional", {});
    Value* flag = choose.body.add_constant(Tensor::scalar<bool>(true), "flag");
    auto then_branch = std::make_shared<Graph>();
    Value* seen = then_branch->add_capture("a", a);
    Value* low = then_branch->add_capture("optional", optional);
    then_branch->add_output(then_branch->add("Clip", {seen, low, nullptr}));
    auto else_branch = std::make_shared<Graph>();
    else_branch->add_output(else_branch->add("Neg", {else_branch->add_capture("a", a)}));
    Attributes branches;
    branches.set("then_branch", then_branch);
    branches.set("else_branch", else_branch);
    choose.body.add_output(choose.body.add("If", {flag}, std::move(branches)), "b");
    Model model = model_of("Choose");
    model.functions.push_back(std::move(choose));
    canonicalize(model);
    const std::vector<Graph*> bodies = model.graph.nodes()[0]->subgraphs();
    ASSERT_EQ(bodies[0]->captures().size(), 1U);
    EXPECT_EQ(bodies[0]->captures()[0]->outer(), model.graph.find("x"));
    EXPECT_EQ(bodies[0]->nodes()[0]->input(1), nullptr);
    EXPECT_EQ(bodies[1]->captures()[0]->outer(), model.graph.find("x"));
    EXPECT_EQ(model.graph.find("x")->users().size(), 2U);
}

TEST(InlineFunction, RefusesRecursionAndExplosion) {
    Function self = function("Self");
    Value* a = self.body.add_input("a", {});
    self.body.add_output(self.body.add("Self", {a}, {}, "again", "local"), "b");
    Model recursive = model_of("Self");
    recursive.functions.push_back(std::move(self));
    EXPECT_THROW(canonicalize(recursive), Error);

    Model explosive = model_of("F0");
    for (int i = 0; i < 40; ++i) {
        Function twice = function(fmt::format("F{}", i).c_str());
        const std::string next = i == 39 ? "Relu" : fmt::format("F{}", i + 1);
        const char* domain = i == 39 ? "" : "local";
        Value* value = twice.body.add_input("a", {});
        value = twice.body.add(next, {value}, {}, {}, domain);
        twice.body.add_output(twice.body.add(next, {value}, {}, {}, domain), "b");
        explosive.functions.push_back(std::move(twice));
    }
    EXPECT_THROW(canonicalize(explosive), Error);
}

TEST(InlineFunction, ChecksTheNumberOfArguments) {
    Model model = model_of("Leak", {}, {"y", "z"});
    model.functions.push_back(leak());
    EXPECT_THROW(canonicalize(model), Error);
}

}  // namespace kilter::inline_function_test
