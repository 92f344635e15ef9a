#include "tuning/rerun.h"

#include <unordered_set>

#include <gtest/gtest.h>

#include "kilter/engine/program.h"
#include "quantization/testing.h"
#include "tuning/output_error.h"

namespace kilter::rerun_test {

using namespace testing;

struct Chain {
    Model model;
    Stats stats;
    std::vector<Tensor> inputs;
    std::shared_ptr<QuantizationCache> cache = make_quantization_cache();

    Chain() {
        Net net;
        Value* x = net.input({2, 3, 8, 8});
        Value* a = net.relu_conv(x, 8, "a");
        Value* b = net.relu_conv(a, 8, "b");
        Value* sum = net.add("Add", {a, b}, {}, "sum");
        Value* c = net.relu_conv(sum, 8, "c");
        net.output(net.conv(c, 4, "d"));
        model.graph = std::move(net.graph());
        model.opsets = {{"", kCanonicalOpset}};
        inputs = {random_tensor({2, 3, 8, 8}, 7)};
        stats = observe(model.graph, inputs);
    }
    QuantizedModel quantized(const std::vector<std::string>& floats) const {
        QuantizeOptions options;
        options.exclude = floats;
        options.cache = cache;
        return quantize(clone(model), stats, options);
    }
};

// Everything the base computes, by signature.
std::unordered_map<uint64_t, std::string> all_known(const Graph& graph) {
    std::unordered_map<uint64_t, std::string> known;
    const std::vector<uint64_t> signs = signatures(graph);
    for (const auto& node : graph.nodes())
        if (node->is("QuantizeLinear"))
            known[signs[static_cast<size_t>(node->output()->id())]] = node->output()->name();
    return known;
}

TEST(Rerun, NothingChangedNeedsNothing) {
    const Chain chain;
    const QuantizedModel base = chain.quantized({});
    const Rerun part = rerun(chain.quantized({}).model, all_known(base.model.graph));
    // The result of the last convolution is no known value: it alone is computed.
    EXPECT_EQ(part.model.graph.count("Conv") + part.model.graph.count("Conv", kKilterDomain), 1U);
}

TEST(Rerun, StartsAtTheChangeAndGivesTheSameResult) {
    const Chain chain;
    const QuantizedModel base = chain.quantized({});
    Model watched = clone(base.model);
    const auto known = all_known(base.model.graph);
    std::vector<std::string> names;
    for (const auto& [sign, name] : known) {
        watched.graph.add_output(watched.graph.find(name));
        names.push_back(name);
    }
    const std::vector<Tensor> results = Program(std::move(watched)).run(chain.inputs);
    std::unordered_map<std::string, Tensor> values{{"x", chain.inputs[0]}};
    for (size_t i = 0; i < names.size(); ++i) values[names[i]] = results[i + 1];

    const size_t all = base.model.graph.nodes().size();
    size_t previous = all + 1;
    for (const char* changed : {"a", "b", "c", "d"}) {
        const QuantizedModel model = chain.quantized({changed});
        Rerun part = rerun(model.model, known);
        EXPECT_TRUE(part.changed);
        EXPECT_LT(part.model.graph.nodes().size(), previous)
            << "the later the change, the less there is to do";
        previous = part.model.graph.nodes().size();
        std::vector<Tensor> inputs;
        for (const std::string& name : part.known) inputs.push_back(values.at(name));
        const Tensor found = Program(std::move(part.model)).run(inputs)[0];
        const Tensor wanted = Program(clone(model.model)).run(chain.inputs)[0];
        EXPECT_TRUE(identical(found, wanted)) << changed;
    }
}

TEST(Rerun, SignaturesTellScalesApart) {
    const Chain chain;
    const QuantizedModel one = chain.quantized({});
    Chain other;
    other.stats.values.find("a/out")->second.max *= 2;
    const QuantizedModel two = other.quantized({});
    const std::vector<uint64_t> first = signatures(one.model.graph);
    const std::vector<uint64_t> second = signatures(two.model.graph);
    const auto sign = [](const Graph& graph, const std::vector<uint64_t>& signs, const char* op) {
        for (const auto& node : graph.nodes())
            if (node->name == op) return signs[static_cast<size_t>(node->output()->id())];
        return uint64_t{0};
    };
    EXPECT_NE(sign(one.model.graph, first, "b"), sign(two.model.graph, second, "b"));
}

TEST(Rerun, KeepsWithinItsMemory) {
    const Chain chain;
    const QuantizedModel base = chain.quantized({});
    const size_t all = values_to_keep(base.model.graph, 2, 1 << 20).size();
    const size_t some = values_to_keep(base.model.graph, 2, 1500).size();
    EXPECT_GT(all, some);
    EXPECT_GT(some, 0U);
    EXPECT_EQ(values_to_keep(base.model.graph, 2, 0).size(), 0U);
}

TEST(OutputError, ComparesClassScoresByWhatSoftmaxMakesOfThem) {
    const Tensor a = Tensor::of<float>({1, 3}, {1, 2, 3});
    const Tensor shifted = Tensor::of<float>({1, 3}, {11, 12, 13});
    const Tensor other = Tensor::of<float>({1, 3}, {3, 2, 1});
    EXPECT_NEAR(output_error({a}, {shifted}), 0, 1e-12) << "the same probabilities";
    EXPECT_GT(output_error({a}, {other}), 0.5);
    const Tensor broken = Tensor::of<float>({1, 3}, {NAN, 2, 1});
    EXPECT_EQ(output_error({a}, {broken}), INFINITY);
}

TEST(OutputError, IsNoiseOverSignalOtherwise) {
    const Tensor a = Tensor::of<float>({1, 2, 2}, {1, 1, 1, 1});
    const Tensor b = Tensor::of<float>({1, 2, 2}, {1, 1, 1, 2});
    EXPECT_NEAR(output_error({a}, {b}), 0.25, 1e-12);
    EXPECT_EQ(output_error({a}, {a}), 0);
}

}  // namespace kilter::rerun_test
