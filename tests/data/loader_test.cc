#include "kilter/data/loader.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/fail.h"

namespace kilter::loader_test {

// Sample i holds the number i and its label; those that are named are damaged.
class Numbers : public Dataset {
  public:
    explicit Numbers(int64_t size, std::vector<int64_t> damaged = {})
        : size_(size), damaged_(std::move(damaged)) {}
    int64_t size() const override { return size_; }
    Sample sample(int64_t index) const override {
        for (const int64_t bad : damaged_) require(bad != index, "number {}: damaged", index);
        Sample sample;
        sample.inputs = {Tensor::of<int64_t>({1}, {index})};
        sample.label["label"] = Tensor::scalar<int64_t>(index);
        sample.name = fmt::format("number {}", index);
        return sample;
    }

  private:
    int64_t size_;
    std::vector<int64_t> damaged_;
};

class Refuse : public Transform {
  public:
    explicit Refuse(int64_t number) : number_(number) {}
    void apply(Sample& sample) const override { require(sample.index != number_, "too odd"); }

  private:
    int64_t number_;
};

std::vector<std::vector<int64_t>> batches(Loader& loader) {
    std::vector<std::vector<int64_t>> all;
    while (const auto batch = loader.next()) {
        all.push_back(batch->inputs.at(0).to_ints());
        EXPECT_EQ(batch->inputs[0].shape(), (Shape{batch->size(), 1}));
        for (size_t i = 0; i < batch->labels.size(); ++i)
            EXPECT_EQ(batch->labels[i].at("label").to_ints().at(0), all.back()[i]);
    }
    EXPECT_FALSE(loader.next());
    return all;
}

using Numbered = std::vector<std::vector<int64_t>>;

TEST(Loader, GivesBatchesInOrderWhateverTheThreads) {
    for (const int threads : {1, 2, 7}) {
        Loader loader(std::make_shared<Numbers>(7), {}, {.batch_size = 3, .threads = threads});
        EXPECT_EQ(loader.samples(), 7);
        EXPECT_EQ(batches(loader), (Numbered{{0, 1, 2}, {3, 4, 5}, {6}}));
        loader.rewind();
        EXPECT_EQ(batches(loader), (Numbered{{0, 1, 2}, {3, 4, 5}, {6}}));
    }
}

TEST(Loader, DropsTheLastBatchOnDemand) {
    Loader loader(std::make_shared<Numbers>(7), {}, {.batch_size = 3, .drop_last = true});
    EXPECT_EQ(batches(loader), (Numbered{{0, 1, 2}, {3, 4, 5}}));
}

TEST(Loader, ShufflesBySeed) {
    const auto order = [](uint64_t seed) {
        Loader loader(std::make_shared<Numbers>(50), {}, {.batch_size = 50, .shuffle = true, .seed = seed});
        return batches(loader).at(0);
    };
    std::vector<int64_t> first = order(1);
    EXPECT_EQ(first, order(1));
    EXPECT_NE(first, order(2));
    std::ranges::sort(first);
    for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(first[static_cast<size_t>(i)], i);
}

TEST(Loader, TakesNoMoreThanTheLimit) {
    Loader loader(std::make_shared<Numbers>(50), {}, {.batch_size = 2, .limit = 3});
    EXPECT_EQ(loader.samples(), 3);
    EXPECT_EQ(batches(loader), (Numbered{{0, 1}, {2}}));
}

TEST(Loader, DamagedSamplesStopOrAreCounted) {
    const auto data = std::make_shared<Numbers>(6, std::vector<int64_t>{2});
    Transforms transforms;
    transforms.push_back(std::make_unique<Refuse>(4));
    Loader counting(data, std::move(transforms), {.batch_size = 2, .on_error = OnError::count});
    EXPECT_EQ(batches(counting), (Numbered{{0, 1}, {3, 5}}));
    EXPECT_EQ(counting.errors(), (std::vector<std::string>{"number 2: damaged", "number 4: too odd"}));
    counting.rewind();
    EXPECT_TRUE(counting.errors().empty());

    Loader stopping(data, {}, {.batch_size = 2});
    EXPECT_TRUE(stopping.next());
    EXPECT_THROW(stopping.next(), Error);
}

TEST(Loader, CanBeLeftInTheMiddle) {
    Loader loader(std::make_shared<Numbers>(10000), {}, {.batch_size = 1, .threads = 3});
    EXPECT_TRUE(loader.next());
    Loader moved = std::move(loader);
    EXPECT_EQ(moved.next()->inputs[0].to_ints().at(0), 1);
}

TEST(Loader, SamplesOfDifferentShapesAreNotStacked) {
    Sample a, b;
    a.inputs = {Tensor::of<float>({2}, {1, 2})};
    b.inputs = {Tensor::of<float>({1}, {1})};
    a.name = "a.png";
    b.name = "b.png";
    try {
        stack({a, b});
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("b.png"), std::string::npos) << error.what();
    }
}

}  // namespace kilter::loader_test
