#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/convert.h"
#include "kilter/base/dtype.h"
#include "kilter/base/error.h"

namespace kilter::dtype_test {

TEST(DType, NamesAreInverseToParsing) {
    for (int code = 0; code <= static_cast<int>(DType::string); ++code) {
        const auto dtype = static_cast<DType>(code);
        EXPECT_EQ(parse_dtype(name(dtype)), dtype) << name(dtype);
    }
    EXPECT_FALSE(parse_dtype("float32").has_value());
}

TEST(DType, CountsBytesOfPackedElements) {
    EXPECT_EQ(byte_count(DType::i4, 5), 3U);
    EXPECT_EQ(byte_count(DType::u2, 5), 2U);
    EXPECT_EQ(byte_count(DType::f32, 5), 20U);
    EXPECT_THROW(byte_count(DType::f64, std::numeric_limits<int64_t>::max()), Error);
    EXPECT_THROW(byte_count(DType::u8, -1), Error);
}

TEST(Half, RoundsToNearestEven) {
    struct Example {
        float value;
        uint16_t bits;
    };
    for (const Example& example :
         {Example{0.0F, 0x0000}, Example{-0.0F, 0x8000}, Example{1.0F, 0x3C00},
          Example{2049.0F, 0x6800},   // a tie: to the even 2048
          Example{2051.0F, 0x6802},   // a tie: to the even 2052
          Example{65504.0F, 0x7BFF},  // the largest
          Example{65519.0F, 0x7BFF}, Example{65520.0F, 0x7C00}, Example{1e10F, 0x7C00},
          Example{5.9604645e-8F, 0x0001},  // the smallest subnormal
          Example{2.9802322e-8F, 0x0000},  // half of it: a tie to zero
          Example{2.9802326e-8F, 0x0001}, Example{6.1035156e-5F, 0x0400}})
        EXPECT_EQ(Half(example.value).bits, example.bits) << example.value;
    EXPECT_TRUE(std::isnan(static_cast<float>(Half(std::nanf("")))));
}

TEST(Half, KeepsEveryValue) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        Half half;
        half.bits = static_cast<uint16_t>(bits);
        const auto value = static_cast<float>(half);
        if (std::isnan(value)) continue;
        ASSERT_EQ(Half(value).bits, half.bits) << value;
    }
}

TEST(BFloat16, RoundsToNearestEven) {
    EXPECT_EQ(BFloat16(1.0F).bits, 0x3F80);
    EXPECT_EQ(BFloat16(1.00390625F).bits, 0x3F80);  // a tie: to the even one
    EXPECT_EQ(BFloat16(1.01171875F).bits, 0x3F82);
    EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
}

TEST(Convert, KeepsEveryValueOfTheSmallFloats) {
    for (const DType dtype :
         {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0}) {
        for (int code = 0; code < 256; ++code) {
            const auto byte = static_cast<uint8_t>(code);
            const double value = load_double(dtype, &byte, 0);
            if (std::isnan(value) || std::isinf(value)) continue;
            uint8_t back = 0;
            store_double(dtype, &back, 0, value);
            EXPECT_EQ(load_double(dtype, &back, 0), value) << name(dtype) << " " << code;
        }
    }
}

TEST(Convert, SaturatesSmallFloatsOnlyWhenAsked) {
    const Tensor large = Tensor::of<float>({2}, {1e6F, -1e6F});
    EXPECT_EQ(convert(large, DType::f8e4m3fn, true).to_doubles(), (std::vector<double>{448, -448}));
    EXPECT_TRUE(std::isnan(convert(large, DType::f8e4m3fn, false).to_doubles()[0]));
    EXPECT_EQ(convert(large, DType::f8e5m2, true).to_doubles(), (std::vector<double>{57344, -57344}));
    EXPECT_TRUE(std::isinf(convert(large, DType::f8e5m2, false).to_doubles()[1]));
}

TEST(Convert, PacksFourBitsLowNibbleFirst) {
    const Tensor packed = convert(Tensor::of<int32_t>({5}, {1, -2, 7, -8, 3}), DType::i4);
    const auto* bytes = static_cast<const uint8_t*>(packed.raw());
    EXPECT_EQ(bytes[0], 0xE1);
    EXPECT_EQ(bytes[1], 0x87);
    EXPECT_EQ(bytes[2], 0x03);
    EXPECT_EQ(packed.to_ints(), (std::vector<int64_t>{1, -2, 7, -8, 3}));
    EXPECT_EQ(convert(Tensor::of<int32_t>({3}, {15, 0, 9}), DType::u4).to_ints(),
              (std::vector<int64_t>{15, 0, 9}));
}

TEST(Convert, TruncatesAndWrapsLikeNumPy) {
    const Tensor reals = Tensor::of<float>({4}, {-1.9F, 1.9F, 300.0F, -129.0F});
    EXPECT_EQ(convert(reals, DType::i8).to_ints(), (std::vector<int64_t>{-1, 1, 44, 127}));
    EXPECT_EQ(convert(reals, DType::boolean).to_ints(), (std::vector<int64_t>{1, 1, 1, 1}));
    EXPECT_EQ(convert(Tensor::of<int64_t>({2}, {-1, int64_t{1} << 40}), DType::u32).to_ints(),
              (std::vector<int64_t>{0xFFFFFFFF, 0}));
}

TEST(Convert, KeepsSixtyFourBitIntegersExact) {
    const int64_t large = (int64_t{1} << 53) + 1;
    EXPECT_EQ(convert(Tensor::of<int64_t>({1}, {large}), DType::u64).to_ints()[0], large);
}

}  // namespace kilter::dtype_test
