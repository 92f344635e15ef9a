#include "engine/native/copy.h"

#include <algorithm>
#include <cstring>

#include "engine/native/loop.h"
#include "engine/native/simd.h"
#include "ops/broadcast.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kilter::engine {
namespace {

// Side of the squares in which a transposing copy works: one cache line of floats.
constexpr int64_t kTile = 16;
// Rows of the source that one job of a transposing copy covers.
constexpr int64_t kStrip = 64;

struct Wide {
    uint64_t words[2];  // NOLINT: a plain element
};

#if defined(__x86_64__)
// Eight by eight words through registers.
__attribute__((target("avx2"))) void transpose_8x8(const uint32_t* from, int64_t step, uint32_t* to,
                                                   int64_t target_step) {
    __m256 r[8];  // NOLINT: registers
    for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(from + i * step));
    __m256 t[8];  // NOLINT
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; ++i) {
        _mm256_storeu_ps(reinterpret_cast<float*>(to + i * target_step),
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps(reinterpret_cast<float*>(to + (i + 4) * target_step),
                         _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}
#endif

// to[i, j] = from[j, i] for i < rows, j < columns; the source is contiguous in i, the target in j.
template <class T>
void transpose_tile(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows, int64_t columns) {
#if defined(__x86_64__)
    if constexpr (sizeof(T) == 4) {
        if (rows == kTile && columns == kTile && isa() != Isa::baseline) {
            for (int64_t i = 0; i < kTile; i += 8)
                for (int64_t j = 0; j < kTile; j += 8)
                    transpose_8x8(from + j * from_step + i, from_step, to + i * to_step + j, to_step);
            return;
        }
    }
#endif
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) to[i * to_step + j] = from[j * from_step + i];
}

}  // namespace

StridedCopy::StridedCopy(const Shape& extent, const Shape& from_strides, const Shape& to_strides,
                         size_t width)
    : width_(width) {
    std::vector<Axis> axes;
    for (size_t i = 0; i < extent.size(); ++i)
        if (extent[i] != 1) axes.push_back({extent[i], from_strides[i], to_strides[i]});
    // In the order of the target, so that it is written from front to back.
    std::ranges::stable_sort(axes, [](const Axis& a, const Axis& b) { return a.to > b.to; });
    for (const Axis& axis : axes) {
        if (!outer_.empty() && outer_.back().from == axis.from * axis.size &&
            outer_.back().to == axis.to * axis.size)
            outer_.back() = {outer_.back().size * axis.size, axis.from, axis.to};
        else
            outer_.push_back(axis);
    }
    if (!outer_.empty()) {
        along_ = outer_.back();
        outer_.pop_back();
    }
    if (along_.to != 1) {
        kind_ = Kind::strided;
    } else if (along_.from == 1) {
        kind_ = Kind::rows;
    } else if (along_.from == 0) {
        kind_ = Kind::repeated;
    } else {
        kind_ = Kind::strided;
        const auto contiguous = std::ranges::find(outer_, int64_t{1}, &Axis::from);
        if (contiguous != outer_.end()) {
            kind_ = Kind::transposed;
            across_ = *contiguous;
            outer_.erase(contiguous);
        }
    }
    for (const Axis& axis : outer_) jobs_ *= axis.size;
}

template <class T>
void StridedCopy::run_as(const char* from, char* to) const {
    const T* source = reinterpret_cast<const T*>(from);
    T* target = reinterpret_cast<T*>(to);
    const int64_t strips = kind_ == Kind::transposed ? (across_.size + kStrip - 1) / kStrip : 1;
    const int threads = threads_for(jobs_ * across_.size * along_.size);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t job = 0; job < jobs_ * strips; ++job) {
        const T* in = source;
        T* out = target;
        int64_t rest = job / strips;
        for (size_t axis = outer_.size(); axis-- > 0;) {
            in += rest % outer_[axis].size * outer_[axis].from;
            out += rest % outer_[axis].size * outer_[axis].to;
            rest /= outer_[axis].size;
        }
        switch (kind_) {
            case Kind::rows:
                std::memcpy(out, in, static_cast<size_t>(along_.size) * sizeof(T));
                break;
            case Kind::repeated:
                std::fill_n(out, along_.size, *in);
                break;
            case Kind::strided:
                for (int64_t i = 0; i < along_.size; ++i) out[i * along_.to] = in[i * along_.from];
                break;
            case Kind::transposed:
                const int64_t begin = job % strips * kStrip;
                const int64_t end = std::min(begin + kStrip, across_.size);
                for (int64_t j = 0; j < along_.size; j += kTile)
                    for (int64_t i = begin; i < end; i += kTile)
                        transpose_tile(in + i + j * along_.from, along_.from, out + i * across_.to + j,
                                       across_.to, std::min(kTile, end - i),
                                       std::min(kTile, along_.size - j));
                break;
        }
    }
}

void StridedCopy::run(const char* from, char* to) const {
    switch (width_) {
        case 1:
            return run_as<uint8_t>(from, to);
        case 2:
            return run_as<uint16_t>(from, to);
        case 4:
            return run_as<uint32_t>(from, to);
        case 8:
            return run_as<uint64_t>(from, to);
        default:
            return run_as<Wide>(from, to);
    }
}

bool StridedCopy::is_tiled() const {
    return kind_ == Kind::transposed && across_.size >= kTile && along_.size >= kTile;
}

bool add_tiled_reorder(Builder& builder, const Array& from, const Array& to) {
    const auto plain = [](const dnnl::memory::desc& desc) {
        return desc.get_format_kind() == dnnl::memory::format_kind::blocked && desc.get_inner_blks().empty();
    };
    if (from.dtype != to.dtype || !plain(from.desc) || !plain(to.desc)) return false;
    if (from.desc.get_dims() != to.desc.get_dims() || from.desc.get_data_type() != to.desc.get_data_type())
        return false;
    const StridedCopy copy(from.desc.get_dims(), from.desc.get_strides(), to.desc.get_strides(),
                           byte_count(from.dtype, 1));
    if (!copy.is_tiled()) return false;
    builder.add_native(
        "native", {from}, {to},
        [=](Execution& execution) { copy.run(execution.address(from), execution.address(to)); }, "reorder");
    return true;
}

StridedArray strided(Builder& builder, const Value* value) {
    Array array = builder.any(value);
    if (array.desc.is_zero() || array.dense) return {array, row_major_strides(array.shape)};
    if (array.desc.get_format_kind() != dnnl::memory::format_kind::blocked ||
        !array.desc.get_inner_blks().empty()) {
        array = builder.dense(value);
        return {array, row_major_strides(array.shape)};
    }
    return {array, array.desc.get_strides()};
}

void add_strided_copy(Builder& builder, const Array& from, int64_t from_offset, const Shape& from_strides,
                      const Array& to, int64_t to_offset, const Shape& to_strides, const Shape& extent) {
    const size_t width = byte_count(from.dtype, 1);
    const StridedCopy copy(extent, from_strides, to_strides, width);
    const int64_t from_bytes = from_offset * static_cast<int64_t>(width);
    const int64_t to_bytes = to_offset * static_cast<int64_t>(width);
    builder.add_native("native", {from}, {to}, [=](Execution& execution) {
        copy.run(execution.address(from) + from_bytes, execution.address(to) + to_bytes);
    });
}

}  // namespace kilter::engine
