#include "quantization/tables.h"

#include <gtest/gtest.h>

#include "quantization/testing.h"

namespace kilter {
namespace {

using namespace testing;

// Gather of the rows 3, 0 and 3 of a table whose second column is a hundred times the first.
struct Lookup {
    Graph graph;
    Node* gather;
    Tensor table;

    Lookup() : table(DType::f32, {64, 2}) {
        const std::span<float> values = table.as_mutable<float>();
        for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i / 2) * (i % 2 == 0 ? 0.01F : 1.0F) - 0.1F;
        Value* rows = graph.add_input("rows", ValueType{DType::i64, {}});
        Value* found = graph.add_value("found", ValueType{DType::f32, {}});
        gather = graph.add_node("Gather", {graph.add_constant(table, "table"), rows}, {found});
        graph.add_output(found);
    }
    Tensor run() const {
        return ref::run(graph, {Tensor::of<int64_t>({3}, std::vector<int64_t>{3, 0, 3})})[0];
    }
};

TEST(QuantizeTable, EveryColumnHasAScaleOfItsOwn) {
    Lookup lookup;
    const Tensor before = lookup.run();
    WeightChoice choice;
    TableQuantizer(lookup.graph, nullptr).quantize(*lookup.gather, choice);
    EXPECT_EQ(lookup.graph.constant(lookup.gather->input(0))->dtype(), DType::i8);
    const Tensor after = lookup.run();
    for (size_t i = 0; i < 6; ++i) {
        const float step = (i % 2 == 0 ? 0.53F : 62.9F) / 127;
        EXPECT_NEAR(after.as<float>()[i], before.as<float>()[i], step / 2) << i;
    }
}

TEST(QuantizeTable, OneScaleForAllIsCoarser) {
    Lookup lookup;
    const Tensor before = lookup.run();
    TableQuantizer(lookup.graph, nullptr).quantize(*lookup.gather, {.granularity = Granularity::per_tensor});
    const Tensor after = lookup.run();
    EXPECT_EQ(after.as<float>()[0], 0.0F);  // 0.03 - 0.1 is below half a step of the large column
    EXPECT_NEAR(after.as<float>()[1], before.as<float>()[1], 62.9F / 254);
}

}  // namespace
}  // namespace kilter
