#include "calibration/counter.h"

// GCC 12 takes the deliberately undefined registers of its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/native/simd.h"

namespace kilter {
namespace {

#define KILTER_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,popcnt")))

constexpr int kSignShift = 31 - 13;  // moves the sign bit to kBins: the second half of the table
static_assert(Histogram::kBins == 1 << 13);
constexpr int64_t kVectorLanes = 16;

struct Indices {
    uint32_t* data;
    int64_t count = 0;
    uint32_t any = 0;  // bits that some index has
};

// Bins of all values that are not zero, densely. Multiplying by a power of two is exact, so no bin is ever missed.
KILTER_INLINE void find_bins_body(const float* values, int64_t count, float scale, Indices& found) {
    for (int64_t i = 0; i < count; ++i) {
        const auto bits = std::bit_cast<uint32_t>(values[i]);
        const uint32_t magnitude = bits & 0x7FFFFFFFU;
        const auto bin = static_cast<uint32_t>(static_cast<int32_t>(std::bit_cast<float>(magnitude) * scale));
        const uint32_t index = bin | ((bits >> kSignShift) & Histogram::kBins);
        found.data[found.count] = index;
        found.any |= index;
        found.count += magnitude != 0 ? 1 : 0;
    }
}

KILTER_AVX512 void find_bins_avx512(const float* values, int64_t count, float scale, Indices& found) {
    const __m512i magnitude_mask = _mm512_set1_epi32(0x7FFFFFFF);
    const __m512i negative = _mm512_set1_epi32(Histogram::kBins);
    const __m512 factor = _mm512_set1_ps(scale);
    __m512i any = _mm512_setzero_si512();
    uint32_t* to = found.data + found.count;
    for (int64_t i = 0; i < count; i += kVectorLanes) {
        const auto lanes =
            static_cast<__mmask16>(count - i >= kVectorLanes ? 0xFFFF : (1 << (count - i)) - 1);
        const __m512i bits = _mm512_maskz_loadu_epi32(lanes, values + i);
        const __m512i magnitude = _mm512_and_si512(bits, magnitude_mask);
        const __mmask16 kept = _mm512_test_epi32_mask(magnitude, magnitude);
        const __m512i bin = _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(magnitude), factor));
        // (bits >> shift & kBins) | bin
        const __m512i index =
            _mm512_ternarylogic_epi32(_mm512_srli_epi32(bits, kSignShift), negative, bin, 0xEA);
        any = _mm512_or_si512(any, index);
        // Compressing in the register: the form that compresses into memory is slow on Zen 4.
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(kept, index));
        to += std::popcount(static_cast<unsigned>(kept));
    }
    found.count = to - found.data;
    found.any |= static_cast<uint32_t>(_mm512_reduce_or_epi32(any));
}

void find_bins(const float* values, int64_t count, float scale, Indices& found) {
    if (engine::isa() == engine::Isa::avx512) return find_bins_avx512(values, count, scale, found);
    find_bins_body(values, count, scale, found);
}

// Sums of single precision overflow where the data is finite but huge: then once more in double.
bool add_slowly(const float* data, int64_t rows, int64_t stride, int64_t channels, double* sum) {
    bool finite = true;
    for (int64_t c = 0; c < channels; ++c) {
        double total = 0;
        for (int64_t r = 0; r < rows; ++r) total += static_cast<double>(data[r * stride + c]);
        finite = finite && std::isfinite(total);
        sum[c] += total;
    }
    return finite;
}

KILTER_INLINE void scan_block_body(const float* data, int64_t rows, int64_t stride, int64_t channels,
                                   float* low, float* high, float* sum) {
    if (channels == kVectorLanes) {
        float lows[kVectorLanes], highs[kVectorLanes], sums[kVectorLanes] = {};
        for (int64_t c = 0; c < kVectorLanes; ++c) lows[c] = low[c], highs[c] = high[c];
        for (int64_t r = 0; r < rows; ++r) {
            const float* row = data + r * stride;
            for (int64_t c = 0; c < kVectorLanes; ++c) {
                lows[c] = row[c] < lows[c] ? row[c] : lows[c];
                highs[c] = row[c] > highs[c] ? row[c] : highs[c];
                sums[c] += row[c];
            }
        }
        for (int64_t c = 0; c < kVectorLanes; ++c) low[c] = lows[c], high[c] = highs[c], sum[c] = sums[c];
        return;
    }
    for (int64_t c = 0; c < channels; ++c) sum[c] = 0;
    for (int64_t r = 0; r < rows; ++r) {
        const float* row = data + r * stride;
        for (int64_t c = 0; c < channels; ++c) {
            low[c] = row[c] < low[c] ? row[c] : low[c];
            high[c] = row[c] > high[c] ? row[c] : high[c];
            sum[c] += row[c];
        }
    }
}
KILTER_SIMD(scan_block,
            (const float* data, int64_t rows, int64_t stride, int64_t channels, float* low, float* high,
             float* sum),
            data, rows, stride, channels, low, high, sum)

// `Blocks` times 16 channels at once: enough independent sums to keep both adders busy, and whole cache lines per row.
template <int Blocks>
KILTER_AVX512 inline __attribute__((always_inline)) void scan_blocks_avx512(const float* data, int64_t rows,
                                                                            int64_t stride, __mmask16 lanes,
                                                                            float* low, float* high,
                                                                            double* sum, __m512& largest,
                                                                            Scan& scan) {
    __m512 lows[Blocks], highs[Blocks], sums[Blocks];
    for (int b = 0; b < Blocks; ++b) {
        lows[b] = _mm512_maskz_loadu_ps(lanes, low + b * kVectorLanes);
        highs[b] = _mm512_maskz_loadu_ps(lanes, high + b * kVectorLanes);
        sums[b] = _mm512_setzero_ps();
    }
    for (int64_t r = 0; r < rows; ++r) {
        for (int b = 0; b < Blocks; ++b) {
            const __m512 row = _mm512_maskz_loadu_ps(lanes, data + r * stride + b * kVectorLanes);
            lows[b] = _mm512_min_ps(row, lows[b]);
            highs[b] = _mm512_max_ps(row, highs[b]);
            sums[b] = _mm512_add_ps(sums[b], row);
        }
    }
    const auto lower = static_cast<__mmask8>(lanes);
    const auto upper = static_cast<__mmask8>(lanes >> 8);
    for (int b = 0; b < Blocks; ++b) {
        _mm512_mask_storeu_ps(low + b * kVectorLanes, lanes, lows[b]);
        _mm512_mask_storeu_ps(high + b * kVectorLanes, lanes, highs[b]);
        const __m512 depth = _mm512_sub_ps(_mm512_setzero_ps(), lows[b]);
        largest = _mm512_max_ps(largest, _mm512_maskz_max_ps(lanes, highs[b], depth));
        double* to = sum + b * kVectorLanes;
        // NaN and infinities stay in a sum; class mask: quiet NaN, both infinities, signalling NaN.
        if (_mm512_mask_fpclass_ps_mask(lanes, sums[b], 0x99) != 0) {
            const int64_t wide = std::popcount(static_cast<unsigned>(lanes));
            scan.finite = add_slowly(data + b * kVectorLanes, rows, stride, wide, to) && scan.finite;
            continue;
        }
        const __m512d first = _mm512_cvtps_pd(_mm512_castps512_ps256(sums[b]));
        const __m512d second = _mm512_cvtps_pd(_mm512_extractf32x8_ps(sums[b], 1));
        _mm512_mask_storeu_pd(to, lower, _mm512_add_pd(_mm512_maskz_loadu_pd(lower, to), first));
        _mm512_mask_storeu_pd(to + 8, upper, _mm512_add_pd(_mm512_maskz_loadu_pd(upper, to + 8), second));
    }
}

KILTER_AVX512 Scan scan_rows_avx512(const float* data, int64_t rows, int64_t stride, int64_t channels,
                                    float* low, float* high, double* sum) {
    Scan scan;
    __m512 largest = _mm512_setzero_ps();
    int64_t c = 0;
    for (; c + 4 * kVectorLanes <= channels; c += 4 * kVectorLanes)
        scan_blocks_avx512<4>(data + c, rows, stride, 0xFFFF, low + c, high + c, sum + c, largest, scan);
    for (; c < channels; c += kVectorLanes) {
        const auto lanes = static_cast<__mmask16>((1 << std::min(channels - c, kVectorLanes)) - 1);
        scan_blocks_avx512<1>(data + c, rows, stride, lanes, low + c, high + c, sum + c, largest, scan);
    }
    scan.largest = _mm512_reduce_max_ps(largest);
    return scan;
}

}  // namespace

Scan scan_rows(const float* data, int64_t rows, int64_t stride, int64_t channels, float* low, float* high,
               double* sum) {
    if (engine::isa() == engine::Isa::avx512)
        return scan_rows_avx512(data, rows, stride, channels, low, high, sum);
    Scan scan;
    for (int64_t c = 0; c < channels; c += kVectorLanes) {
        const int64_t wide = std::min(channels - c, kVectorLanes);
        float sums[kVectorLanes];
        scan_block(data + c, rows, stride, wide, low + c, high + c, sums);
        const bool finite = std::all_of(sums, sums + wide, [](float value) { return std::isfinite(value); });
        for (int64_t i = 0; i < wide; ++i) scan.largest = std::max({scan.largest, high[c + i], -low[c + i]});
        if (finite)
            for (int64_t i = 0; i < wide; ++i) sum[c + i] += static_cast<double>(sums[i]);
        else
            scan.finite = add_slowly(data + c, rows, stride, wide, sum + c) && scan.finite;
    }
    return scan;
}

void Counter::cover(float largest) {
    const int wanted = Histogram::exponent_for(largest);
    if (wanted <= exponent_) return;
    flush(histogram_);
    histogram_.widen(wanted);
    exponent_ = wanted;
    zeros_ = 0;
    std::ranges::fill(bins_, 0);
    std::ranges::fill(overflow_, 0);
}

void Counter::prefetch() const {
    constexpr size_t kPerLine = 64 / sizeof(uint16_t);
    const size_t end = negative_ ? bins_.size() : bins_.size() / 2;
    for (size_t i = 0; i < end; i += kPerLine) __builtin_prefetch(&bins_[i], 1);
}

void Counter::count(std::span<const float> values) {
    if (bins_.empty()) {
        bins_.resize(size_t{2} * Histogram::kBins);
        overflow_.resize(bins_.size());
    }
    alignas(64) uint32_t indices[kCounterTile + kVectorLanes];
    Indices found{indices};
    find_bins(values.data(), static_cast<int64_t>(values.size()), std::ldexp(1.0F, -exponent_), found);
    uint16_t* bins = bins_.data();
    const auto increment = [&](uint32_t index) {
        if (++bins[index] == 0) ++overflow_[index];
    };
    int64_t i = 0;
    for (; i + 4 <= found.count; i += 4) {
        increment(indices[i]);
        increment(indices[i + 1]);
        increment(indices[i + 2]);
        increment(indices[i + 3]);
    }
    for (; i < found.count; ++i) increment(indices[i]);
    negative_ = negative_ || (found.any & Histogram::kBins) != 0;
    zeros_ += static_cast<int64_t>(values.size()) - found.count;
}

void Counter::flush(Histogram& histogram) const {
    const int doublings = std::min(histogram.exponent_ - exponent_, 31);
    const auto add_side = [&](std::vector<int64_t>& to, size_t begin) {
        const auto count = [&](size_t i) {
            return static_cast<int64_t>(overflow_[begin + i]) * 65536 + bins_[begin + i];
        };
        int64_t total = 0;
        for (size_t i = 0; i < Histogram::kBins; ++i) total += count(i);
        if (total == 0) return;
        to.resize(Histogram::kBins);
        for (size_t i = 0; i < Histogram::kBins; ++i) to[i >> doublings] += count(i);
    };
    if (!bins_.empty()) {
        add_side(histogram.positive_, 0);
        add_side(histogram.negative_, Histogram::kBins);
    }
    histogram.zeros_ += zeros_;
}

Histogram Counter::histogram() const {
    Histogram histogram = histogram_;
    flush(histogram);
    return histogram;
}

}  // namespace kilter
