#include "ops/movement.h"

#include <unistd.h>

#include <array>
#include <cstring>

#include "base/convert.h"
#include "base/fail.h"

namespace kilter {
namespace {

struct Wide {
    std::array<uint64_t, 2> words;
};

template <class T>
void copy_run(int64_t count, const std::byte* source, int64_t source_step, std::byte* target,
              int64_t target_step) {
    constexpr auto kWidth = static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < count; ++i) {
        T element;  // through memcpy: a mapped source may have any alignment
        std::memcpy(&element, source + i * source_step * kWidth, sizeof(T));
        std::memcpy(target + i * target_step * kWidth, &element, sizeof(T));
    }
}

void copy_elements(size_t width, int64_t count, const std::byte* source, int64_t source_step,
                   std::byte* target, int64_t target_step) {
    if (source_step == 1 && target_step == 1) {
        std::memcpy(target, source, static_cast<size_t>(count) * width);
        return;
    }
    switch (width) {
        case 1:
            return copy_run<uint8_t>(count, source, source_step, target, target_step);
        case 2:
            return copy_run<uint16_t>(count, source, source_step, target, target_step);
        case 4:
            return copy_run<uint32_t>(count, source, source_step, target, target_step);
        case 8:
            return copy_run<uint64_t>(count, source, source_step, target, target_step);
        default:
            return copy_run<Wide>(count, source, source_step, target, target_step);
    }
}

struct Axis {
    int64_t extent, source_stride, target_stride;
};

}  // namespace

void copy_block(const Shape& extent, size_t width, const void* source, const Shape& source_strides,
                void* target, const Shape& target_strides) {
    std::vector<Axis> axes;
    for (size_t i = 0; i < extent.size(); ++i) {
        if (extent[i] == 0) return;
        if (extent[i] == 1) continue;
        const Axis axis{extent[i], source_strides[i], target_strides[i]};
        if (!axes.empty() && axes.back().source_stride == axis.source_stride * axis.extent &&
            axes.back().target_stride == axis.target_stride * axis.extent) {
            axes.back() = {axes.back().extent * axis.extent, axis.source_stride, axis.target_stride};
        } else {
            axes.push_back(axis);
        }
    }
    const auto* from = static_cast<const std::byte*>(source);
    auto* to = static_cast<std::byte*>(target);
    if (axes.empty()) {
        std::memcpy(to, from, width);
        return;
    }
    const Axis inner = axes.back();
    axes.pop_back();
    std::vector<int64_t> position(axes.size(), 0);
    const auto bytes = static_cast<int64_t>(width);
    while (true) {
        copy_elements(width, inner.extent, from, inner.source_stride, to, inner.target_stride);
        size_t axis = axes.size();
        for (; axis > 0; --axis) {
            const Axis& outer = axes[axis - 1];
            from += outer.source_stride * bytes;
            to += outer.target_stride * bytes;
            if (++position[axis - 1] < outer.extent) break;
            from -= outer.source_stride * outer.extent * bytes;
            to -= outer.target_stride * outer.extent * bytes;
            position[axis - 1] = 0;
        }
        if (axis == 0) return;
    }
}

ElementMove::ElementMove(KernelContext& context, std::vector<Tensor> sources)
    : context_(context),
      dtype_(sources.at(0).dtype()),
      width_(static_cast<size_t>(bits(dtype_)) / 8),
      sources_(std::move(sources)) {
    for (const Tensor& source : sources_)
        require(source.dtype() == dtype_, "expected tensors of one element type, found {} and {}",
                name(dtype_), name(source.dtype()));
    if (dtype_ == DType::string) {
        width_ = sizeof(int64_t);
        for (Tensor& source : sources_) {
            Tensor positions(DType::i64, source.shape());
            for (int64_t& position : positions.as_mutable<int64_t>()) {
                position = static_cast<int64_t>(pool_.size());
                pool_.push_back(
                    source.as_strings()[static_cast<size_t>(&position - positions.as<int64_t>().data())]);
            }
            source = std::move(positions);
        }
    } else if (width_ == 0) {
        width_ = 1;
        for (Tensor& source : sources_) {
            Tensor spread(DType::u8, source.shape());
            const DType stored = bits(dtype_) == 4 ? DType::u4 : DType::u2;
            for (int64_t i = 0; i < source.size(); ++i)
                store_int(DType::u8, spread.raw_mutable(), i, load_int(stored, source.raw(), i));
            source = std::move(spread);
        }
    }
}

std::byte* ElementMove::target(size_t output, const Shape& shape) {
    require_reasonable_size(dtype_, shape);
    output_ = output;
    if (bits(dtype_) >= 8)
        return static_cast<std::byte*>(context_.output(output, dtype_, shape).raw_mutable());
    moved_ = Tensor(dtype_ == DType::string ? DType::i64 : DType::u8, shape);
    return static_cast<std::byte*>(moved_.raw_mutable());
}

void ElementMove::finish() {
    if (bits(dtype_) >= 8) return;
    Tensor& result = context_.output(output_, dtype_, moved_.shape());
    if (dtype_ == DType::string) {
        for (int64_t i = 0; i < moved_.size(); ++i)
            result.as_strings_mutable()[static_cast<size_t>(i)] =
                pool_.at(static_cast<size_t>(moved_.as<int64_t>()[i]));
        return;
    }
    if (result.bytes() > 0) std::memset(result.raw_mutable(), 0, result.bytes());
    const DType stored = bits(dtype_) == 4 ? DType::u4 : DType::u2;
    for (int64_t i = 0; i < moved_.size(); ++i)
        store_int(stored, result.raw_mutable(), i, load_int(DType::u8, moved_.raw(), i));
}

void require_reasonable_size(DType dtype, const Shape& shape) {
    // Allocation is lazy: a request beyond the machine's memory would succeed here and kill the process
    // later.
    static const size_t limit =
        static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
    const size_t bytes = byte_count(dtype == DType::string ? DType::i64 : dtype, element_count(shape));
    require(bytes <= limit, "a result of shape {} needs {} bytes, more than this machine has",
            to_string(shape), bytes);
}

}  // namespace kilter
