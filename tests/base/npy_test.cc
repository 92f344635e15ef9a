#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/npy.h"
#include "kilter/base/error.h"

namespace kilter::npy_test {

class Npy : public ::testing::Test {
  protected:
    void SetUp() override {
        path_ = std::filesystem::temp_directory_path() /
                ("kilter_npy_" + std::to_string(::getpid()) + "_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".npy");
    }
    void TearDown() override { std::filesystem::remove(path_); }

    // A version 1 file with the given header text and data.
    void write_raw(const std::string& header, const std::string& data) const {
        std::ofstream file(path_, std::ios::binary);
        file << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() & 0xFF)
             << static_cast<char>(header.size() >> 8) << header << data;
    }

    std::string error() const {
        try {
            read_npy(path_);
        } catch (const Error& error) {
            return error.what();
        }
        return "no error";
    }

    std::filesystem::path path_;
};

TEST_F(Npy, KeepsEveryTypeNumPyKnows) {
    for (const DType dtype : {DType::f32, DType::f16, DType::f64, DType::boolean, DType::i8, DType::u8,
                              DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
        for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0, 3}, Shape{2, 3, 5}}) {
            const Tensor tensor = Tensor::filled(dtype, shape, 1);
            write_npy(tensor, path_);
            EXPECT_TRUE(identical(read_npy(path_), tensor)) << name(dtype) << " " << to_string(shape);
        }
    }
}

TEST_F(Npy, KeepsStrings) {
    const Tensor tensor = Tensor::strings({2, 2}, {"a", "", "größer", "日本"});
    write_npy(tensor, path_);
    EXPECT_EQ(read_npy(path_).as_strings(), tensor.as_strings());
}

TEST_F(Npy, WidensWhatNumPyDoesNotHave) {
    write_npy(Tensor::filled(DType::bf16, {2}, 1.5), path_);
    EXPECT_TRUE(identical(read_npy(path_), Tensor::of<float>({2}, {1.5F, 1.5F})));
    write_npy(Tensor::filled(DType::i4, {3}, -2), path_);
    EXPECT_TRUE(identical(read_npy(path_), Tensor::of<int8_t>({3}, {-2, -2, -2})));
}

TEST_F(Npy, ReadsBigEndianAndColumnMajor) {
    write_raw("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n",
              std::string("\0\1\0\4\0\2\0\5\0\3\0\6", 12));
    EXPECT_TRUE(identical(read_npy(path_), Tensor::of<int16_t>({2, 3}, {1, 2, 3, 4, 5, 6})));
}

TEST_F(Npy, ReportsTruncationAtEveryLength) {
    write_npy(Tensor::filled(DType::f32, {4, 5}, 2), path_);
    const auto size = std::filesystem::file_size(path_);
    for (uintmax_t length = 0; length < size; ++length) {
        std::filesystem::resize_file(path_, length);
        write_npy(Tensor::filled(DType::f32, {4, 5}, 2), path_);
        std::filesystem::resize_file(path_, length);
        EXPECT_NE(error(), "no error") << length;
    }
}

TEST_F(Npy, RefusesHostileHeaders) {
    const std::string data(64, '\0');
    const auto message = [&](const std::string& header) {
        write_raw(header, data);
        return error();
    };
    const auto shape = [&](const std::string& text) {
        return message("{'descr': '<f4', 'fortran_order': False, 'shape': " + text + ", }\n");
    };
    EXPECT_NE(shape("(4611686018427387904, 4)").find("too many"), std::string::npos);
    EXPECT_NE(shape("(1000000000000,)").find("truncated"), std::string::npos);
    EXPECT_NE(shape("(-1,)").find("damaged"), std::string::npos);
    EXPECT_NE(shape("(99999999999999999999,)").find("damaged"), std::string::npos);
    EXPECT_NE(shape("'x'").find("damaged"), std::string::npos);
    EXPECT_NE(
        message("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }").find("structures"),
        std::string::npos);
    EXPECT_NE(message("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }").find("not supported"),
              std::string::npos);
    EXPECT_NE(message("{'descr': '<f4', 'shape': (1,), }").find("lacks"), std::string::npos);
    EXPECT_NE(message("{").find("damaged"), std::string::npos);
}

TEST_F(Npy, NamesTheFileInErrors) {
    EXPECT_NE(error().find(path_.string()), std::string::npos);
    EXPECT_THROW(write_npy(Tensor::scalar(1.0F), path_ / "below" / "a.npy"), Error);
}

}  // namespace kilter::npy_test
