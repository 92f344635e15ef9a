// Arrays of MXNet in every version of the format, and files that lie.
#include "formats/mxnet/params.h"

#include <gtest/gtest.h>

#include "kilter/base/error.h"

namespace kilter::mxnet::params_test {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

NamedArrays parse(const std::string& text) {
    const auto kept = std::make_shared<const std::string>(text);
    return read_params_bytes(bytes_of(*kept), kept);
}

std::string error_of(const std::string& text) {
    try {
        parse(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

template <class T>
std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// A file with one array whose head is `head`, of two floats.
std::string file_of(const std::string& head) {
    std::string text = raw<uint64_t>(0x112) + raw<uint64_t>(0) + raw<uint64_t>(1) + head;
    text += raw<int32_t>(1) + raw<int32_t>(0) + raw<int32_t>(0) + raw(1.5F) + raw(-2.0F);
    return text + raw<uint64_t>(1) + raw<uint64_t>(5) + "arg:w";
}

TEST(MxnetParams, ReadsEveryVersionOfAnArray) {
    const std::string rank = raw<uint32_t>(1), wide = raw<int64_t>(2);
    for (const std::string& head : {rank + raw<uint32_t>(2), raw(0xF993FAC8U) + rank + wide,
                                    raw(0xF993FAC9U) + raw<int32_t>(0) + rank + wide,
                                    raw(0xF993FACAU) + raw<int32_t>(0) + rank + wide}) {
        const NamedArrays arrays = parse(file_of(head));
        ASSERT_EQ(arrays.size(), 1U);
        EXPECT_EQ(arrays[0].first, "arg:w");
        EXPECT_EQ(arrays[0].second.shape(), (Shape{2}));
        EXPECT_EQ(arrays[0].second.as<float>()[1], -2.0F);
    }
}

TEST(MxnetParams, ComesBackAsItWasWritten) {
    const NamedArrays arrays{{"arg:f", Tensor::of<float>({2, 1}, {1, 2})},
                             {"arg:h", Tensor::of<float>({2}, {1, 2}).converted(DType::f16)},
                             {"arg:i", Tensor::of<int8_t>({3}, {-1, 0, 1})},
                             {"aux:l", Tensor::of<int64_t>({1}, {1LL << 40})},
                             {"arg:none", Tensor::of<uint8_t>({0, 2}, {})}};
    const std::string text = write_params_bytes(arrays);
    const NamedArrays back = parse(text);
    ASSERT_EQ(back.size(), arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
        EXPECT_EQ(back[i].first, arrays[i].first);
        EXPECT_TRUE(identical(back[i].second, arrays[i].second)) << arrays[i].first;
    }
}

TEST(MxnetParams, RefusesSparseArraysByName) {
    EXPECT_NE(error_of(file_of(raw(0xF993FAC9U) + raw<int32_t>(1))).find("row-sparse"), std::string::npos);
    EXPECT_NE(error_of(file_of(raw(0xF993FAC9U) + raw<int32_t>(2))).find("CSR"), std::string::npos);
}

TEST(MxnetParams, EveryTruncationIsAnError) {
    const std::string text = write_params_bytes(
        {{"arg:a", Tensor::of<float>({2, 2}, {1, 2, 3, 4})}, {"aux:b", Tensor::of<int32_t>({1}, {7})}});
    for (size_t length = 0; length < text.size(); ++length)
        EXPECT_THROW(parse(text.substr(0, length)), Error);
    EXPECT_NO_THROW(parse(text));
    EXPECT_NE(error_of(text + "x").find("follows"), std::string::npos);
}

TEST(MxnetParams, SizesThatLieAreErrors) {
    const auto numbers = [](uint64_t count) { return raw<uint64_t>(0x112) + raw<uint64_t>(0) + raw(count); };
    EXPECT_NE(error_of(numbers(~0ULL)).find("claims"), std::string::npos);
    EXPECT_NE(error_of(numbers(1ULL << 40) + std::string(64, '\0')).find("claims"), std::string::npos);
    const auto array = [&](uint32_t rank, std::initializer_list<int64_t> dims) {
        std::string head = raw(0xF993FAC9U) + raw<int32_t>(0) + raw(rank);
        for (const int64_t dim : dims) head += raw(dim);
        return error_of(file_of(head));
    };
    EXPECT_NE(array(2, {1LL << 40, 1LL << 40}).find("array 0"), std::string::npos);
    EXPECT_NE(array(1, {1LL << 30}).find("truncated"), std::string::npos);
    EXPECT_NE(array(1, {-3}).find("-3"), std::string::npos);
    EXPECT_NE(array(1000000, {}).find("rank"), std::string::npos);
    EXPECT_NE(error_of(raw<uint64_t>(0x113) + std::string(16, '\0')).find("not a file of MXNet"),
              std::string::npos);
    EXPECT_NE(error_of(std::string("PK\x03\x04") + std::string(30, ' ')).find(".npz"), std::string::npos);
}

}  // namespace kilter::mxnet::params_test
