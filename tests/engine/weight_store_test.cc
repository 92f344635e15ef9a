// Packed weights are made once per constant and packing, for all programs that use them at a time.
#include "engine/builder.h"
#include "engine/testing.h"

namespace kilter::engine::testing::weight_store_test {

struct Packing {
    int made = 0;
    WeightStore::Make make() {
        return [this]() -> std::shared_ptr<const void> {
            ++made;
            return std::make_shared<int>(made);
        };
    }
};

TEST(WeightStore, MakesEveryPackingOnce) {
    const Tensor source = random(DType::f32, {4}, 1);
    Packing packing;
    WeightStore store;
    const auto first = store.get(source, "a", packing.make());
    EXPECT_EQ(store.get(source, "a", packing.make()), first);
    EXPECT_NE(store.get(source, "b", packing.make()), first);
    EXPECT_EQ(packing.made, 2);
}

TEST(WeightStore, SharesWithProgramsThatLive) {
    const Tensor source = random(DType::f32, {4}, 1);
    Packing packing;
    WeightStore store;
    {
        WeightStore other;
        const auto first = other.get(source, "a", packing.make());
        EXPECT_EQ(store.get(source, "a", packing.make()), first);
    }
    store.get(source, "a", packing.make());
    EXPECT_EQ(packing.made, 1);
}

TEST(WeightStore, ForgetsWhatNoProgramUses) {
    const Tensor source = random(DType::f32, {4}, 1);
    Packing packing;
    WeightStore().get(source, "a", packing.make());
    WeightStore().get(source, "a", packing.make());
    EXPECT_EQ(packing.made, 2);
}

}  // namespace kilter::engine::testing::weight_store_test
