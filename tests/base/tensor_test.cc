#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "kilter/base/error.h"
#include "kilter/base/tensor.h"

namespace kilter::tensor_test {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(Tensor, CountsElementsWithoutOverflow) {
    EXPECT_EQ(element_count(Shape{}), 1);
    EXPECT_EQ(element_count(Shape{2, 0, 3}), 0);
    EXPECT_EQ(element_count(Shape{0, 4}), 0);
    EXPECT_THROW(element_count(Shape{kHuge, 2}), Error);
    EXPECT_THROW(element_count(Shape{2, -1}), Error);
}

TEST(Tensor, RefusesAbsurdSizes) {
    EXPECT_THROW(Tensor(DType::f32, {kHuge}), Error);
    EXPECT_THROW(Tensor(DType::u8, {kHuge}), Error);
    EXPECT_THROW(Tensor(DType::f64, {int64_t{1} << 31, int64_t{1} << 31}), Error);
}

TEST(Tensor, SharesStorageUntilCloned) {
    Tensor original = Tensor::of<float>({2}, {1, 2});
    const Tensor shared = original;
    const Tensor copy = original.clone();
    original.as_mutable<float>()[0] = 5;
    EXPECT_EQ(shared.as<float>()[0], 5);
    EXPECT_EQ(copy.as<float>()[0], 1);
    EXPECT_TRUE(shared.same_storage(original));
    EXPECT_FALSE(copy.same_storage(original));
}

TEST(Tensor, ReadsMisalignedMappedMemory) {
    std::array<uint8_t, 17> bytes{};
    const std::array<double, 2> values{1.5, -2.5};
    std::memcpy(bytes.data() + 1, values.data(), sizeof(values));
    const Tensor mapped = Tensor::mapped(DType::f64, {2}, bytes.data() + 1, nullptr);
    EXPECT_EQ(mapped.raw(), bytes.data() + 1);
    EXPECT_EQ(mapped.as<double>()[1], -2.5);
    EXPECT_EQ(mapped.as<double>().data(), mapped.as<double>().data());  // copied once only
    EXPECT_EQ(mapped.to_doubles(), (std::vector<double>{1.5, -2.5}));
}

TEST(Tensor, KeepsTheOwnerOfMappedMemoryAlive) {
    auto owner = std::make_shared<std::array<float, 2>>(std::array<float, 2>{3, 4});
    const std::weak_ptr<std::array<float, 2>> watch = owner;
    Tensor mapped = Tensor::mapped(DType::f32, {2}, owner->data(), owner);
    owner.reset();
    EXPECT_EQ(mapped.as<float>()[1], 4);
    mapped = Tensor();
    EXPECT_TRUE(watch.expired());
}

TEST(Tensor, GuardsReadOnlyMemoryAndTypes) {
    const std::array<float, 1> value{1};
    Tensor view = Tensor::view(DType::f32, {1}, static_cast<const void*>(value.data()));
    EXPECT_FALSE(view.writable());
    EXPECT_THROW(view.as_mutable<float>(), Error);
    EXPECT_THROW(view.as<double>(), Error);
    EXPECT_THROW(view.as_strings(), Error);
    EXPECT_THROW(view.to_ints(), Error);
}

TEST(Tensor, ReshapesOnlyToAsManyElements) {
    const Tensor tensor = Tensor::of<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(tensor.reshaped({3, 2}).shape(), (Shape{3, 2}));
    EXPECT_TRUE(tensor.reshaped({6}).same_storage(tensor));
    EXPECT_THROW(tensor.reshaped({4}), Error);
}

TEST(Tensor, HoldsStrings) {
    const Tensor words = Tensor::strings({2}, {"a", "b"});
    EXPECT_EQ(words.clone().as_strings()[1], "b");
    EXPECT_TRUE(identical(words, words.clone()));
    EXPECT_THROW(Tensor::strings({3}, {"a"}), Error);
}

TEST(Tensor, ComparesTypeShapeAndBytes) {
    const Tensor a = Tensor::of<float>({2}, {1, 2});
    EXPECT_TRUE(identical(a, a.clone()));
    EXPECT_FALSE(identical(a, a.reshaped({1, 2})));
    EXPECT_FALSE(identical(a, Tensor::of<float>({2}, {1, 3})));
    EXPECT_FALSE(identical(a, Tensor::of<int32_t>({2}, {1, 2})));
}

}  // namespace kilter::tensor_test
