// Loading a large model takes no time and no memory: its weights stay in the file until they are used.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "formats/onnx/schema.h"
#include "formats/onnx_samples.h"

namespace kilter::onnx::onnx_large_test {

using namespace testing;

constexpr size_t kWeightBytes = size_t{1} << 30;

size_t resident_bytes() {
    size_t total = 0;
    size_t resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// One tensor of a gigabyte of zeros, which the file system stores as a hole.
void write_sparse_model(const std::filesystem::path& path) {
    void* zeros =
        ::mmap(nullptr, kWeightBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(zeros, MAP_FAILED);
    Message tensor;
    tensor.integer(field::Tensor::dims, static_cast<int64_t>(kWeightBytes / 4));
    tensor.integer(field::Tensor::data_type, 1);
    tensor.text(field::Tensor::name, "w");
    tensor.blob(field::Tensor::raw_data, zeros, kWeightBytes);
    Message whole =
        graph({.nodes = {node("Relu", {"w"}, {"y"})}, .outputs = {value_info("y", 1, {kWeightBytes / 4})}});
    whole.message(field::Graph::initializer, tensor);
    Message model;
    model.integer(field::Model::ir_version, 10);
    model.message(field::Model::graph, whole);
    const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    ASSERT_GE(file, 0);
    model.visit([&](const void* data, size_t size) {
        if (data == zeros)
            ASSERT_GE(::lseek(file, static_cast<off_t>(size), SEEK_CUR), 0);
        else
            ASSERT_EQ(::write(file, data, size), static_cast<ssize_t>(size));
    });
    ASSERT_EQ(::ftruncate(file, ::lseek(file, 0, SEEK_CUR)), 0);
    ::close(file);
    ::munmap(zeros, kWeightBytes);
}

TEST(OnnxLarge, LoadsAGigabyteWithoutTimeOrMemory) {
    const TemporaryDirectory directory;
    write_sparse_model(directory / "large.onnx");
    const size_t before = resident_bytes();
    const auto start = std::chrono::steady_clock::now();
    const Model model = read(directory / "large.onnx");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const size_t after = resident_bytes();
    EXPECT_EQ(model.graph.constant(model.graph.find("w"))->bytes(), kWeightBytes);
    EXPECT_LT(seconds, 0.2);
    EXPECT_LT(after - std::min(after, before), size_t{8} << 20);
}

}  // namespace kilter::onnx::onnx_large_test
