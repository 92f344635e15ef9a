#include <gtest/gtest.h>

#include <fstream>

#include "formats/onnx/schema.h"
#include "formats/onnx_samples.h"
#include "kilter/base/error.h"

namespace kilter::onnx::onnx_writer_test {

using namespace testing;

// What differs between two graphs, in words; empty when they are the same.
std::string difference(const Graph& a, const Graph& b) {
    if (a.name != b.name || a.doc != b.doc || a.foreign != b.foreign) return "graph " + a.name;
    if (a.nodes().size() != b.nodes().size()) return "number of nodes in " + a.name;
    if (a.inputs().size() != b.inputs().size() || a.outputs().size() != b.outputs().size())
        return "inputs of " + a.name;
    if (a.values().size() != b.values().size()) return "number of values in " + a.name;
    for (const Value* value : a.values()) {
        const Value* other = b.find(value->name());
        if (other == nullptr) return "value " + value->name();
        if (to_string(value->type) != to_string(other->type) || value->type.foreign != other->type.foreign ||
            value->doc != other->doc || value->foreign != other->foreign ||
            value->is_input() != other->is_input() || value->is_constant() != other->is_constant() ||
            value->listed_as_input != other->listed_as_input)
            return "value " + value->name();
        if (value->is_constant() && !identical(*a.constant(value), *b.constant(other)))
            return "contents of " + value->name();
    }
    for (size_t i = 0; i < a.outputs().size(); ++i)
        if (a.outputs()[i].name != b.outputs()[i].name ||
            to_string(a.outputs()[i].type) != to_string(b.outputs()[i].type))
            return "output " + a.outputs()[i].name;
    for (size_t i = 0; i < a.nodes().size(); ++i) {
        const Node& x = *a.nodes()[i];
        const Node& y = *b.nodes()[i];
        if (x.op() != y.op() || x.domain() != y.domain() || x.name != y.name || x.overload != y.overload ||
            x.foreign != y.foreign || x.attributes.size() != y.attributes.size())
            return "node " + x.name;
        const std::vector<Graph*> left = x.subgraphs();
        const std::vector<Graph*> right = y.subgraphs();
        if (left.size() != right.size()) return "sub-graphs of " + x.name;
        for (size_t j = 0; j < left.size(); ++j)
            if (const std::string inner = difference(*left[j], *right[j]); !inner.empty()) return inner;
    }
    return {};
}

const Node* find_node(const Graph& graph, const std::string& op) {
    for (const auto& node : graph.nodes())
        if (node->op() == op) return node.get();
    return nullptr;
}

TEST(OnnxWriter, KeepsEverythingItRead) {
    const Model first = read_text(rich_model());
    const std::string text = write_bytes(first);
    const Model second = read_text(text);
    EXPECT_EQ(difference(first.graph, second.graph), "");
    EXPECT_EQ(first.opsets, second.opsets);
    EXPECT_EQ(first.metadata, second.metadata);
    EXPECT_EQ(first.foreign, second.foreign);
    EXPECT_NE(first.foreign.find("unknown field of a model"), std::string::npos);
    EXPECT_EQ(write_bytes(second), text);

    const Node* mystery = find_node(second.graph, "Mystery");
    ASSERT_NE(mystery, nullptr);
    EXPECT_EQ(mystery->inputs().size(), 3U);
    EXPECT_EQ(mystery->input(1), nullptr);
    EXPECT_EQ(mystery->outputs().size(), 2U);
    EXPECT_EQ(mystery->doc, "nobody knows");
    EXPECT_NE(text.find("a field of the future"), std::string::npos);
    EXPECT_NE(text.find("doc of an attribute"), std::string::npos);
    EXPECT_NE(text.find("IMAGE"), std::string::npos);
    EXPECT_TRUE(std::holds_alternative<ForeignAttribute>(*mystery->attributes.find("kind")));

    ASSERT_EQ(second.functions.size(), 1U);
    const Function& function = second.functions[0];
    EXPECT_EQ(function.name, "Leak");
    EXPECT_EQ(function.overload, "v2");
    EXPECT_EQ(function.attributes, std::vector<std::string>{"unused"});
    EXPECT_EQ(function.defaults.get_float("slope"), 0.5F);
    EXPECT_EQ(std::get<AttributeReference>(*function.body.nodes()[0]->attributes.find("alpha")).name,
              "slope");
    EXPECT_EQ(difference(first.functions[0].body, function.body), "");
}

TEST(OnnxWriter, PutsLargeTensorsIntoExternalDataWhenAsked) {
    const TemporaryDirectory directory;
    Model model;
    model.opsets = {{"", 21}};
    const Tensor shared = Tensor::filled(DType::f32, {1000}, 3);
    Value* x = model.graph.add_input("x", {DType::f32, {1000}});
    Value* a = model.graph.add_constant(shared, "a");
    Value* b = model.graph.add_constant(shared, "b");
    Value* c = model.graph.add_constant(Tensor::filled(DType::f16, {1001}, 4), "c");
    Value* small = model.graph.add_constant(Tensor::scalar<float>(1), "small");
    model.graph.add_output(model.graph.add("Mystery", {x, a, b, c, small}), "y");
    write(model, directory / "m.onnx", {.external_data = true});
    EXPECT_EQ(std::filesystem::file_size(directory / "m.onnx.data"),
              4032U + 2002U);  // a and b once, c aligned to 64
    const Model found = read(directory / "m.onnx");
    for (const char* name : {"a", "b", "c", "small"})
        EXPECT_TRUE(identical(*found.graph.constant(found.graph.find(name)),
                              *model.graph.constant(model.graph.find(name))));
    // Over the files it is mapped from.
    write(found, directory / "m.onnx");
    EXPECT_TRUE(identical(*found.graph.constant(found.graph.find("c")), *model.graph.constant(c)));
    EXPECT_EQ(difference(read(directory / "m.onnx").graph, found.graph), "");
}

TEST(OnnxWriter, LeavesNoHalfWrittenFile) {
    const TemporaryDirectory directory;
    const Model model = read_text(rich_model());
    EXPECT_THROW(write(model, directory / "missing" / "m.onnx"), Error);
    std::filesystem::create_directory(directory / "taken");
    EXPECT_THROW(write(model, directory / "taken"), Error);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
    EXPECT_TRUE(std::filesystem::is_empty(directory / "taken"));
}

TEST(OnnxWriter, GivesReplacedOutputsTheirNamesBack) {
    Model model;
    model.opsets = {{"", 21}};
    Graph& graph = model.graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    Value* first = graph.add("Relu", {x});
    Value* w = graph.add_constant(Tensor::of<float>({2}, {1, 2}), "w");
    graph.add_output(first, "y");
    graph.add_output(first, "again");
    graph.add_output(x, "same_as_x");
    graph.add_output(w, "constant");
    const Model found = read_text(write_bytes(model));
    ASSERT_EQ(found.graph.outputs().size(), 4U);
    EXPECT_EQ(found.graph.outputs()[0].value->producer()->op(), "Relu");
    EXPECT_EQ(found.graph.outputs()[0].value->name(), "y");
    for (size_t i = 1; i < 4; ++i) {
        EXPECT_EQ(found.graph.outputs()[i].name, graph.outputs()[i].name);
        EXPECT_EQ(found.graph.outputs()[i].value->producer()->op(), "Identity");
    }
    EXPECT_EQ(found.graph.outputs()[1].value->producer()->input(0), found.graph.find("y"));
}

TEST(OnnxWriter, RenamesWhatStandsInTheWayOfAnOutput) {
    Model model;
    model.opsets = {{"", 21}};
    Graph& graph = model.graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    Value* y = graph.add_value("y");
    graph.add_node("Relu", {x}, {y});
    Value* z = graph.add("Neg", {y});
    graph.add_output(z, "y");
    const Model found = read_text(write_bytes(model));
    EXPECT_EQ(found.graph.outputs()[0].value->producer()->op(), "Neg");
    EXPECT_EQ(found.graph.outputs()[0].name, "y");
}

TEST(OnnxWriter, WritesCapturesUnderTheNameOfTheOuterValue) {
    Model model;
    model.opsets = {{"", 21}};
    Graph& graph = model.graph;
    Value* x = graph.add_input("x", {DType::f32, {2}});
    Value* flag = graph.add_input("flag", {DType::boolean, {}});
    auto body = std::make_shared<Graph>();
    Value* seen = body->add_capture("x_inside", x);
    Value* clash = body->add_value("x");  // shadows the outer value's name
    body->add_node("Relu", {seen}, {clash});
    body->add_output(body->add("Add", {seen, clash}), "r");
    Attributes attributes;
    attributes.set("then_branch", body);
    Value* y = graph.add_value("y");
    graph.add_node("If", {flag}, {y}, std::move(attributes));
    graph.add_output(y);
    const Model found = read_text(write_bytes(model));
    const Graph* inner = found.graph.nodes()[0]->subgraphs()[0];
    ASSERT_EQ(inner->captures().size(), 1U);
    EXPECT_EQ(inner->captures()[0]->outer(), found.graph.find("x"));
    const Node* sum = find_node(*inner, "Add");
    EXPECT_EQ(sum->input(0), inner->captures()[0]);
    EXPECT_EQ(sum->input(1)->producer()->op(), "Relu");
}

TEST(OnnxWriter, ListsInitializersAsInputsForOldIrVersions) {
    Model model;
    model.ir_version = 3;
    model.opsets = {{"", 9}};
    Value* x = model.graph.add_input("x", {DType::f32, {2}});
    Value* w = model.graph.add_constant(Tensor::of<float>({2}, {1, 2}), "w");
    model.graph.add_output(model.graph.add("Add", {x, w}), "y");
    const Model found = read_text(write_bytes(model));
    EXPECT_TRUE(found.graph.find("w")->listed_as_input);
    EXPECT_EQ(found.graph.inputs().size(), 1U);
}

TEST(OnnxWriter, ImportsItsOwnDomainWhenItIsUsed) {
    Model model;
    model.opsets = {{"", 21}};
    Value* x = model.graph.add_input("x", {DType::f32, {2}});
    model.graph.add_output(model.graph.add("MatMul", {x, x}, {}, {}, kKilterDomain), "y");
    EXPECT_EQ(read_text(write_bytes(model)).opset(kKilterDomain), 1);
}

}  // namespace kilter::onnx::onnx_writer_test
