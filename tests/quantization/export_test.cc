#include <gtest/gtest.h>

#include <set>

#include "kilter/formats/onnx.h"
#include "quantization/testing.h"

namespace kilter::export_test {

using namespace testing;

Model read_back(const Model& model) {
    const std::string bytes = onnx::write_bytes(model);
    return onnx::read_bytes(std::as_bytes(std::span(bytes)));
}

TEST(Export, HoldsStandardOperatorsAndTheSameFunction) {
    Net net;
    Value* trunk = net.relu_conv(net.input({1, 4, 8, 8}), 4, "trunk");
    Value* y = net.conv(trunk, 4, "branch");
    append_post_op(net.graph(), *y->producer(), "add", 0, 0, trunk);
    append_post_op(net.graph(), *y->producer(), "relu");
    net.output(net.conv(y, 4, "head"));
    const Quantized done = net.quantize();
    const Model model = read_back(export_model(done.result));
    for (const auto& node : model.graph.nodes()) EXPECT_EQ(node->domain(), "") << describe(*node);
    EXPECT_EQ(model.opset(), 13);
    Model raised = clone(model);
    expect_near(ref::run(raised.graph, done.inputs), done.run(), 1e-6);
}

TEST(Export, KeepsThePlanTheRangesAndTheAssumptions) {
    Net net;
    net.output(net.conv(net.input({1, 4, 8, 8}), 4, "conv"));
    const Quantized done = net.quantize();
    const Model model = read_back(export_model(done.result));
    ASSERT_TRUE(stored_plan(model).has_value());
    EXPECT_EQ(*stored_plan(model), done.result.plan);
    std::vector<std::string> keys;
    for (const auto& [key, value] : model.metadata) keys.push_back(key);
    for (const char* key : {"kilter.version", "kilter.ranges", "kilter.assumptions"})
        EXPECT_NE(std::ranges::find(keys, key), keys.end()) << key;
    EXPECT_FALSE(stored_plan(Model{}).has_value());
}

TEST(Export, AttentionIsReadableByRuntimesThatFuseAtPairs) {
    Net net;
    Value* x = net.input({2, 6, 8});
    const auto head = [&](const std::string& name) {
        Value* y = net.add("Reshape", {net.matmul(x, 8, 8, name), ints(net.graph(), {0, 0, 2, 4})}, {},
                           name + "/heads");
        return net.add("Transpose", {y}, ints_attribute("perm", {0, 2, 1, 3}), name + "/split");
    };
    net.output(net.add("Attention", {head("q"), head("k"), head("v")}, attribute("scale", 0.5F), "attention",
                       kKilterDomain));
    const Quantized done = net.quantize();
    const Model model = read_back(export_model(done.result));
    // Every product reads dequantized values on both sides, the transposed keys and the probabilities too.
    std::set<std::string> names;
    for (const auto& node : model.graph.nodes()) {
        EXPECT_TRUE(names.insert(node->name).second) << node->name;
        if (!node->is("MatMul")) continue;
        EXPECT_NE(produced_by_dequantize(node->input(0)), nullptr) << describe(*node);
        EXPECT_NE(produced_by_dequantize(node->input(1)), nullptr) << describe(*node);
    }
    const double step =
        1.0 / 255;  // probabilities are rounded in the file, not in the FP32 form of the operator
    expect_near(ref::run(model.graph, done.inputs), done.run(), 4 * step);
}

TEST(Export, TakesTheOpsetThatIsNeeded) {
    Net net;
    Value* y = net.layer_norm(net.input({2, 4, 8}), 8, "norm");
    y = net.matmul(y, 8, 8, "dense");
    append_post_op(net.graph(), *y->producer(), "gelu_erf");
    net.output(y);
    EXPECT_EQ(export_model(net.quantize().result).opset(), 17);
}

TEST(Export, StoresWeightsAsBytes) {
    Net net;
    net.output(net.matmul(net.input({1, 256}), 256, 256, "fc"));
    const Quantized done = net.quantize();
    EXPECT_LT(onnx::write_bytes(export_model(done.result)).size(), 256U * 256 + 8192);
    EXPECT_GT(done.result.report.bytes_before, 3 * done.result.report.bytes_after);
    EXPECT_NE(done.result.report.text().find("MatMul"), std::string::npos);
}

}  // namespace kilter::export_test
