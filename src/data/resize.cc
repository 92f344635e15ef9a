#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/fail.h"
#include "data/image.h"

namespace kilter {
namespace {

// For every target position, the source positions it averages and their weights, `width` of them, zeros behind.
struct Taps {
    int64_t width = 0;
    std::vector<int64_t> first;
    std::vector<double> weights;

    explicit Taps(int64_t target) : first(static_cast<size_t>(target)) {}
};

Taps gather(const std::vector<std::vector<double>>& rows, const std::vector<int64_t>& first) {
    Taps taps(static_cast<int64_t>(rows.size()));
    taps.first = first;
    for (const auto& row : rows) taps.width = std::max(taps.width, static_cast<int64_t>(row.size()));
    taps.weights.assign(rows.size() * static_cast<size_t>(taps.width), 0.0);
    for (size_t i = 0; i < rows.size(); ++i)
        std::ranges::copy(rows[i], taps.weights.begin() + static_cast<std::ptrdiff_t>(i) * taps.width);
    return taps;
}

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }
double box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }

// Keys' cubic convolution; Pillow takes a = -1/2, OpenCV -3/4.
double cubic(double x, double a) {
    x = std::fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

// A filter stretched over max(ratio, 1) source pixels and cut at the border.
Taps antialiased(int64_t source, int64_t target, double support,
                 const std::function<double(double)>& filter) {
    const double ratio = static_cast<double>(source) / static_cast<double>(target);
    const double stretch = std::max(ratio, 1.0);
    const double reach = support * stretch;
    const double shrink = 1.0 / stretch;
    std::vector<std::vector<double>> rows(static_cast<size_t>(target));
    std::vector<int64_t> first(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
        const double center = (static_cast<double>(i) + 0.5) * ratio;
        const auto begin = std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - reach + 0.5)));
        const auto end = std::min<int64_t>(source, static_cast<int64_t>(std::floor(center + reach + 0.5)));
        first[i] = begin;
        double sum = 0;
        for (int64_t k = 0; k < end - begin; ++k) {
            rows[i].push_back(filter((static_cast<double>(k + begin) - center + 0.5) * shrink));
            sum += rows[i].back();
        }
        if (sum != 0)
            for (double& weight : rows[i]) weight /= sum;
    }
    return gather(rows, first);
}

// A few neighbours of the exact position; those beyond the border repeat the outermost pixel.
Taps neighbours(int64_t source, int64_t target, Interpolation interpolation) {
    const double ratio = static_cast<double>(source) / static_cast<double>(target);
    std::vector<std::vector<double>> rows(static_cast<size_t>(target));
    std::vector<int64_t> first(rows.size());
    const auto add = [&](size_t row, int64_t position, double weight) {
        position = std::clamp<int64_t>(position, 0, source - 1);
        if (rows[row].empty()) first[row] = position;
        const auto offset = static_cast<size_t>(position - first[row]);
        if (rows[row].size() <= offset) rows[row].resize(offset + 1, 0.0);
        rows[row][offset] += weight;
    };
    for (size_t i = 0; i < rows.size(); ++i) {
        const auto index = static_cast<double>(i);
        // OpenCV keeps the position in single precision.
        double position = static_cast<float>((index + 0.5) * ratio - 0.5);
        if (interpolation == Interpolation::nearest) position = std::floor(index * ratio);
        const double low = std::floor(position);
        double fraction = position - low;
        const auto base = static_cast<int64_t>(low);
        if (interpolation == Interpolation::nearest) {
            add(i, base, 1);
        } else if (interpolation == Interpolation::bicubic) {
            for (int k = -1; k <= 2; ++k) add(i, base + k, cubic(fraction - k, -0.75));
        } else {
            int64_t left = base;
            if (interpolation ==
                Interpolation::area) {  // enlarging: pixels stay flat but for one step between them
                left = static_cast<int64_t>(index * ratio);
                fraction = (index + 1) - static_cast<double>(left + 1) / ratio;
                fraction = fraction <= 0 ? 0 : fraction - std::floor(fraction);
            }
            add(i, left, 1 - fraction);
            if (fraction > 0) add(i, left + 1, fraction);
        }
    }
    return gather(rows, first);
}

// The mean over the stretch of source pixels a target pixel covers; those at its ends count by what is covered.
Taps covered(int64_t source, int64_t target) {
    const double ratio = static_cast<double>(source) / static_cast<double>(target);
    std::vector<std::vector<double>> rows(static_cast<size_t>(target));
    std::vector<int64_t> first(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
        const double begin = static_cast<double>(i) * ratio;
        const double end = std::min(begin + ratio, static_cast<double>(source));
        first[i] = static_cast<int64_t>(begin);
        for (int64_t k = first[i]; k < source && static_cast<double>(k) < end - 1e-9; ++k) {
            const double from = std::max(begin, static_cast<double>(k));
            const double to = std::min(end, static_cast<double>(k + 1));
            rows[i].push_back((to - from) / (end - begin));
        }
    }
    return gather(rows, first);
}

// Pillow steps through the source by repeated addition: the position of pixel i carries the rounding of i additions.
Taps stepped(int64_t source, int64_t target) {
    Taps taps(target);
    taps.width = 1;
    taps.weights.assign(static_cast<size_t>(target), 1.0);
    const double ratio = static_cast<double>(source) / static_cast<double>(target);
    double position = ratio * 0.5;
    for (int64_t& first : taps.first) {
        first = std::min(static_cast<int64_t>(position), source - 1);
        position += ratio;
    }
    return taps;
}

Taps make_taps(int64_t source, int64_t target, Interpolation interpolation, Resampler resampler,
               bool enlarges) {
    if (resampler == Resampler::opencv)
        return interpolation == Interpolation::area && !enlarges ? covered(source, target)
                                                                 : neighbours(source, target, interpolation);
    switch (interpolation) {
        case Interpolation::nearest:
            return stepped(source, target);
        case Interpolation::bilinear:
            return antialiased(source, target, 1, triangle);
        case Interpolation::bicubic:
            return antialiased(source, target, 2, [](double x) { return cubic(x, -0.5); });
        case Interpolation::area:
            return antialiased(source, target, 0.5, box);
    }
    fail("an interpolation of no kind");
}

// Weights with 22 bits of fraction: sums of 8-bit pixels then still fit 32 bits, with room for negative lobes.
constexpr int kFractionBits = 22;

std::vector<int32_t> fixed_point(const Taps& taps) {
    std::vector<int32_t> weights;
    weights.reserve(taps.weights.size());
    for (const double weight : taps.weights)
        weights.push_back(static_cast<int32_t>(weight * (1 << kFractionBits) + (weight < 0 ? -0.5 : 0.5)));
    return weights;
}

uint8_t to_pixel(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kFractionBits, 0, 255)); }

// One pass along the middle axis of [outer, source, inner].
template <class T, class Sum, class Weight, class Store>
void pass(const T* source, int64_t outer, int64_t length, int64_t inner, const Taps& taps,
          const std::vector<Weight>& weights, Sum start, T* target, const Store& store) {
    const auto count = static_cast<int64_t>(taps.first.size());
    std::vector<Sum> sums(static_cast<size_t>(inner));
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < count; ++i) {
            const int64_t first = taps.first[static_cast<size_t>(i)];
            const int64_t width = std::min(taps.width, length - first);
            const T* row = source + (o * length + first) * inner;
            const Weight* weight = weights.data() + i * taps.width;
            T* out = target + (o * count + i) * inner;
            if (inner == 3) {  // a row of RGB pixels
                Sum sum[3] = {start, start, start};
                for (int64_t k = 0; k < width; ++k, row += 3)
                    for (int c = 0; c < 3; ++c) sum[c] += weight[k] * static_cast<Sum>(row[c]);
                for (int c = 0; c < 3; ++c) out[c] = store(sum[c]);
                continue;
            }
            std::fill(sums.begin(), sums.end(), start);
            for (int64_t k = 0; k < width; ++k, row += inner) {
                const Weight w = weight[k];
                for (int64_t j = 0; j < inner; ++j)
                    sums[static_cast<size_t>(j)] += w * static_cast<Sum>(row[j]);
            }
            for (int64_t j = 0; j < inner; ++j) out[j] = store(sums[static_cast<size_t>(j)]);
        }
}

Tensor pass_u8(const Tensor& image, int axis, const Taps& taps) {
    Shape shape = image.shape();
    shape[static_cast<size_t>(axis)] = static_cast<int64_t>(taps.first.size());
    Tensor result(DType::u8, shape);
    const int64_t outer = axis == 0 ? 1 : image.dim(0);
    const int64_t inner = axis == 0 ? image.dim(1) * image.dim(2) : image.dim(2);
    pass(image.as<uint8_t>().data(), outer, image.dim(axis), inner, taps, fixed_point(taps),
         int32_t{1} << (kFractionBits - 1), result.as_mutable<uint8_t>().data(), to_pixel);
    return result;
}

Tensor pass_f32(const Tensor& image, int axis, const Taps& taps) {
    Shape shape = image.shape();
    shape[static_cast<size_t>(axis)] = static_cast<int64_t>(taps.first.size());
    Tensor result(DType::f32, shape);
    const int64_t outer = axis == 0 ? 1 : image.dim(0);
    const int64_t inner = axis == 0 ? image.dim(1) * image.dim(2) : image.dim(2);
    const std::vector<float> weights(taps.weights.begin(), taps.weights.end());
    pass(image.as<float>().data(), outer, image.dim(axis), inner, taps, weights, 0.0F,
         result.as_mutable<float>().data(), [](float sum) { return sum; });
    return result;
}

Tensor to_pixels(const Tensor& image) {
    Tensor result(DType::u8, image.shape());
    const std::span<const float> source = image.as<float>();
    uint8_t* target = result.as_mutable<uint8_t>().data();
    for (const float value : source)
        *target++ = static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0F, 255.0F));
    return result;
}

}  // namespace

Tensor resize(const Tensor& image, int64_t height, int64_t width, Interpolation interpolation,
              Resampler resampler) {
    require(image.rank() == 3 && (image.dtype() == DType::u8 || image.dtype() == DType::f32),
            "cannot resize {} {}: expected height x width x channels of u8 or f32", name(image.dtype()),
            to_string(image.shape()));
    require(image.size() > 0, "cannot resize an empty image of {}", to_string(image.shape()));
    require(height > 0 && width > 0 && height <= kMostPixels / width, "cannot resize an image to {}x{}",
            height, width);
    if (image.dim(0) == height && image.dim(1) == width) return image;
    const bool enlarges = height > image.dim(0) || width > image.dim(1);
    const Taps columns = make_taps(image.dim(1), width, interpolation, resampler, enlarges);
    const Taps rows = make_taps(image.dim(0), height, interpolation, resampler, enlarges);
    if (image.dtype() == DType::u8 &&
        (resampler == Resampler::pillow || interpolation == Interpolation::nearest)) {
        const Tensor wide = image.dim(1) == width ? image : pass_u8(image, 1, columns);
        return wide.dim(0) == height ? wide : pass_u8(wide, 0, rows);
    }
    const Tensor wide = pass_f32(image.converted(DType::f32), 1, columns);
    const Tensor result = pass_f32(wide, 0, rows);
    return image.dtype() == DType::u8 ? to_pixels(result) : result;
}

}  // namespace kilter
