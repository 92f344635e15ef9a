#include "kilter/base/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>

#include "base/convert.h"
#include "base/fail.h"

namespace kilter {

// Owns or keeps alive the bytes behind tensors. `aligned` is the copy made when a mapped tensor turns out misaligned.
struct Tensor::Storage {
    std::shared_ptr<const void> keeper;
    std::vector<std::string> strings;
    std::vector<Tensor> items;
    mutable std::mutex mutex;
    mutable std::vector<std::pair<const void*, std::shared_ptr<const void>>> aligned;
};

namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<void> allocate(size_t bytes) {
    const size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr)
        throw Error(fmt::format("out of memory: cannot allocate {} bytes for a tensor", bytes));
    return {memory, std::free};
}

bool is_aligned(const void* data, DType dtype) {
    const int width = std::max(bits(dtype) / 8, 1);
    return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(std::min(width, 8)) == 0;
}

}  // namespace

int64_t element_count(std::span<const int64_t> shape) {
    int64_t count = 1;
    bool zero = false;
    for (const int64_t dim : shape) {
        require(dim >= 0, "negative dimension in shape {}", to_string(Shape(shape.begin(), shape.end())));
        if (dim == 0)
            zero = true;
        else if (__builtin_mul_overflow(count, dim, &count))
            fail("shape {} has too many elements", to_string(Shape(shape.begin(), shape.end())));
    }
    return zero ? 0 : count;
}

std::string to_string(const Shape& shape) {
    return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), writable_(true), shape_(std::move(shape)) {
    size_ = element_count(shape_);
    auto storage = std::make_shared<Storage>();
    if (dtype == DType::string) {
        storage->strings.resize(static_cast<size_t>(size_));
    } else {
        std::shared_ptr<void> memory = allocate(byte_count(dtype, size_));
        data_ = memory.get();
        storage->keeper = std::move(memory);
    }
    storage_ = std::move(storage);
}

Tensor Tensor::view(DType dtype, Shape shape, void* data) {
    return adopted(dtype, std::move(shape), data, nullptr);
}

Tensor Tensor::view(DType dtype, Shape shape, const void* data) {
    return mapped(dtype, std::move(shape), data, nullptr);
}

Tensor Tensor::mapped(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> keeper) {
    Tensor tensor;
    tensor.dtype_ = dtype;
    tensor.size_ = element_count(shape);
    tensor.shape_ = std::move(shape);
    tensor.data_ = data;
    auto storage = std::make_shared<Storage>();
    storage->keeper = std::move(keeper);
    tensor.storage_ = std::move(storage);
    return tensor;
}

Tensor Tensor::adopted(DType dtype, Shape shape, void* data, std::shared_ptr<const void> keeper) {
    Tensor tensor = mapped(dtype, std::move(shape), data, std::move(keeper));
    tensor.writable_ = true;
    return tensor;
}

Tensor Tensor::strings(Shape shape, std::vector<std::string> values) {
    Tensor tensor(DType::string, std::move(shape));
    require(static_cast<int64_t>(values.size()) == tensor.size(), "{} strings do not fill shape {}",
            values.size(), to_string(tensor.shape()));
    tensor.as_strings_mutable() = std::move(values);
    return tensor;
}

Tensor Tensor::sequence(std::vector<Tensor> items) {
    Tensor tensor(DType::sequence, {static_cast<int64_t>(items.size())});
    const_cast<Storage&>(*tensor.storage_).items = std::move(items);  // NOLINT: nobody shares it yet
    return tensor;
}

template <class T>
Tensor Tensor::of(Shape shape, const std::vector<T>& values) {
    Tensor tensor(dtype_of<T>, std::move(shape));
    require(static_cast<int64_t>(values.size()) == tensor.size(), "{} values do not fill shape {}",
            values.size(), to_string(tensor.shape()));
    const std::span<T> elements = tensor.as_mutable<T>();
    for (size_t i = 0; i < values.size(); ++i) elements[i] = values[i];  // std::vector<bool> has no data()
    return tensor;
}

template Tensor Tensor::of(Shape, const std::vector<float>&);
template Tensor Tensor::of(Shape, const std::vector<double>&);
template Tensor Tensor::of(Shape, const std::vector<Half>&);
template Tensor Tensor::of(Shape, const std::vector<BFloat16>&);
template Tensor Tensor::of(Shape, const std::vector<bool>&);
template Tensor Tensor::of(Shape, const std::vector<int8_t>&);
template Tensor Tensor::of(Shape, const std::vector<uint8_t>&);
template Tensor Tensor::of(Shape, const std::vector<int16_t>&);
template Tensor Tensor::of(Shape, const std::vector<uint16_t>&);
template Tensor Tensor::of(Shape, const std::vector<int32_t>&);
template Tensor Tensor::of(Shape, const std::vector<uint32_t>&);
template Tensor Tensor::of(Shape, const std::vector<int64_t>&);
template Tensor Tensor::of(Shape, const std::vector<uint64_t>&);

Tensor Tensor::filled(DType dtype, Shape shape, double value) {
    Tensor tensor(dtype, std::move(shape));
    for (int64_t i = 0; i < tensor.size(); ++i) store_double(dtype, tensor.raw_mutable(), i, value);
    return tensor;
}

size_t Tensor::bytes() const { return byte_count(dtype_, size_); }

void* Tensor::raw_mutable() {
    require(writable_, "internal error: writing to a read-only tensor");
    return const_cast<void*>(data_);  // NOLINT: writable_ says the memory was handed over as mutable
}

const void* Tensor::typed(DType dtype) const {
    require(dtype == dtype_, "tensor elements are {}, not {}", name(dtype_), name(dtype));
    if (is_aligned(data_, dtype_)) return data_;
    const std::lock_guard lock(storage_->mutex);
    for (const auto& [source, copy] : storage_->aligned)
        if (source == data_) return copy.get();
    std::shared_ptr<void> copy = allocate(bytes());
    std::memcpy(copy.get(), data_, bytes());
    storage_->aligned.emplace_back(data_, copy);
    return copy.get();
}

void* Tensor::typed_mutable(DType dtype) {
    require(dtype == dtype_, "tensor elements are {}, not {}", name(dtype_), name(dtype));
    require(is_aligned(data_, dtype_), "internal error: writing to a misaligned tensor");
    return raw_mutable();
}

const std::vector<std::string>& Tensor::as_strings() const {
    require(dtype_ == DType::string, "tensor elements are {}, not strings", name(dtype_));
    return storage_->strings;
}

std::vector<std::string>& Tensor::as_strings_mutable() {
    require(dtype_ == DType::string && writable_, "tensor elements are {}, not writable strings",
            name(dtype_));
    return const_cast<Storage&>(*storage_).strings;  // NOLINT: as in raw_mutable
}

const std::vector<Tensor>& Tensor::as_sequence() const {
    require(dtype_ == DType::sequence, "expected a sequence, found a tensor of {}", name(dtype_));
    return storage_->items;
}

Tensor Tensor::clone() const {
    if (empty()) return {};
    if (dtype_ == DType::sequence) {
        std::vector<Tensor> items;
        for (const Tensor& item : as_sequence()) items.push_back(item.clone());
        return sequence(std::move(items));
    }
    Tensor copy(dtype_, shape_);
    if (dtype_ == DType::string)
        copy.as_strings_mutable() = as_strings();
    else if (bytes() > 0)
        std::memcpy(copy.raw_mutable(), data_, bytes());
    return copy;
}

Tensor Tensor::reshaped(Shape shape) const {
    require(element_count(shape) == size_, "cannot reshape {} elements ({}) to {}", size_, to_string(shape_),
            to_string(shape));
    Tensor other = *this;
    other.shape_ = std::move(shape);
    return other;
}

Tensor Tensor::converted(DType dtype) const {
    if (dtype == dtype_) return *this;
    return convert(*this, dtype);
}

std::vector<int64_t> Tensor::to_ints() const {
    require(is_integer(dtype_) || dtype_ == DType::boolean, "expected integers, found a tensor of {}",
            name(dtype_));
    std::vector<int64_t> values(static_cast<size_t>(size_));
    for (int64_t i = 0; i < size_; ++i) values[static_cast<size_t>(i)] = load_int(dtype_, data_, i);
    return values;
}

std::vector<double> Tensor::to_doubles() const {
    std::vector<double> values(static_cast<size_t>(size_));
    for (int64_t i = 0; i < size_; ++i) values[static_cast<size_t>(i)] = load_double(dtype_, data_, i);
    return values;
}

bool identical(const Tensor& a, const Tensor& b) {
    if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
    if (a.dtype() == DType::string) return a.as_strings() == b.as_strings();
    if (a.dtype() == DType::sequence) return std::ranges::equal(a.as_sequence(), b.as_sequence(), identical);
    return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace kilter
