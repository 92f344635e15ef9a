// GridSample: reads an image at arbitrary normalized positions, with any number of spatial axes from one to three.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"
#include "ops/window.h"

namespace kilter::grid_sample_op {

enum class Padding { zeros, border, reflection };

struct Sampling {
    std::string mode;
    Padding padding = Padding::zeros;
    bool align_corners = false;
};

// One neighbour along one axis; index -1 stands for the zeros around the image.
struct Tap {
    int64_t index;
    double weight;
};

Sampling read_sampling(const Attributes& attributes) {
    Sampling sampling;
    sampling.mode = attributes.get_string("mode", "linear");
    // Before opset 20 the modes had the names of their two-dimensional cases.
    if (sampling.mode == "bilinear") sampling.mode = "linear";
    if (sampling.mode == "bicubic") sampling.mode = "cubic";
    require(sampling.mode == "linear" || sampling.mode == "nearest" || sampling.mode == "cubic",
            "attribute 'mode' must be linear, nearest or cubic, found '{}'", sampling.mode);
    const std::string padding = attributes.get_string("padding_mode", "zeros");
    require(padding == "zeros" || padding == "border" || padding == "reflection",
            "attribute 'padding_mode' must be zeros, border or reflection, found '{}'", padding);
    if (padding != "zeros") sampling.padding = padding == "border" ? Padding::border : Padding::reflection;
    sampling.align_corners = attributes.get_int("align_corners") != 0;
    return sampling;
}

Dims sample_dims(const Dims& x, const Dims& grid) {
    require(x.size() >= 3 && x.size() <= 5, "the input must have 1 to 3 spatial axes, found {}",
            to_string(x));
    require(grid.size() == x.size() && agree(grid[0], x[0]) &&
                agree(grid.back(), static_cast<int64_t>(x.size()) - 2),
            "a grid for the input {} must have shape [{}, …, {}] and the same rank, found {}", to_string(x),
            to_string(x[0]), x.size() - 2, to_string(grid));
    Dims result{x[0], x[1]};
    result.insert(result.end(), grid.begin() + 1, grid.end() - 1);
    return result;
}

void infer(InferContext& context) {
    read_sampling(context.attributes());
    if (!context.shape(0) || !context.shape(1)) return context.set_output(0, context.dtype(0));
    context.set_output(0, context.dtype(0), sample_dims(*context.shape(0), *context.shape(1)));
}

// Mirrors at both ends of [low, high] until the coordinate lies inside.
double reflected(double coordinate, double low, double high) {
    const double range = high - low;
    if (range <= 0) return low;
    const double distance = std::fmod(std::fabs(coordinate - low), 2 * range);
    return low + (distance > range ? 2 * range - distance : distance);
}

int64_t pixel(const Sampling& sampling, int64_t index, int64_t extent, double low, double high) {
    if (index >= 0 && index < extent) return index;
    if (sampling.padding == Padding::zeros) return -1;
    if (sampling.padding == Padding::border) return std::clamp<int64_t>(index, 0, extent - 1);
    return std::clamp<int64_t>(static_cast<int64_t>(reflected(static_cast<double>(index), low, high)), 0,
                               extent - 1);
}

double cubic_weight(double distance) {
    constexpr double a = -0.75;
    const double x = std::fabs(distance);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
    return 0;
}

std::vector<Tap> taps_at(const Sampling& sampling, double normalized, int64_t extent) {
    const double low = sampling.align_corners ? 0.0 : -0.5;
    const double high = static_cast<double>(extent) - (sampling.align_corners ? 1.0 : 0.5);
    double at = sampling.align_corners ? (normalized + 1) / 2 * static_cast<double>(extent - 1)
                                       : ((normalized + 1) * static_cast<double>(extent) - 1) / 2;
    // Grids are data: a coordinate that is not a number is far outside, and none leaves the reach of integers.
    const auto limit = static_cast<double>(kWindowLimit);
    at = std::isnan(at) ? -limit : std::clamp(at, -limit, limit);
    if (sampling.mode == "nearest") at = std::nearbyint(at);
    if (at < low || at > high) {
        // A cubic sample keeps its place and only its neighbours are clamped, as PyTorch does it.
        if (sampling.padding == Padding::border && sampling.mode != "cubic")
            at = std::clamp(at, 0.0, static_cast<double>(extent - 1));
        if (sampling.padding == Padding::reflection) at = reflected(at, low, high);
    }
    const auto tap = [&](int64_t index, double weight) {
        return Tap{pixel(sampling, index, extent, low, high), weight};
    };
    if (sampling.mode == "nearest") return {tap(static_cast<int64_t>(at), 1.0)};
    const auto floor = static_cast<int64_t>(std::floor(at));
    const double ratio = at - static_cast<double>(floor);
    if (sampling.mode == "linear") return {tap(floor, 1 - ratio), tap(floor + 1, ratio)};
    std::vector<Tap> taps;
    for (int64_t i = -1; i <= 2; ++i)
        taps.push_back(tap(floor + i, cubic_weight(static_cast<double>(i) - ratio)));
    return taps;
}

// The sample at the product of the taps of three axes.
double interpolate(const double* plane, const std::array<std::vector<Tap>, 3>& taps, const Triple& extents) {
    double sum = 0;
    for (const Tap& z : taps[0])
        for (const Tap& y : taps[1])
            for (const Tap& x : taps[2])
                if (z.index >= 0 && y.index >= 0 && x.index >= 0)
                    sum += z.weight * y.weight * x.weight *
                           plane[(z.index * extents[1] + y.index) * extents[2] + x.index];
    return sum;
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    const Tensor grid = to_reals(needed(context, 1, "the grid"));
    const Sampling sampling = read_sampling(context.attributes());
    const Dims dims = sample_dims(to_dims(x.shape()), to_dims(grid.shape()));
    Tensor y = real_zeros(ValueType(DType::f64, dims).static_shape());
    const size_t spatial = x.shape().size() - 2;
    const Tensor values = to_reals(x);
    if (y.size() > 0) {
        require(x.size() > 0, "the input {} has no elements to sample", to_string(x.shape()));
        const Triple extents = triple(std::span(x.shape()).subspan(2), 1);
        const int64_t plane = extents[0] * extents[1] * extents[2];
        const int64_t points = extent(y.shape(), 2, y.shape().size());
        const int64_t channels = x.dim(1);
        for (int64_t image = 0; image < x.dim(0); ++image)
            for (int64_t point = 0; point < points; ++point) {
                const double* position =
                    grid.as<double>().data() + (image * points + point) * static_cast<int64_t>(spatial);
                std::array<std::vector<Tap>, 3> taps;
                taps.fill({Tap{0, 1.0}});
                // Grids list coordinates as (x, y, z): the last axis first.
                for (size_t axis = 0; axis < spatial; ++axis)
                    taps[2 - axis] = taps_at(sampling, position[axis], extents[2 - axis]);
                for (int64_t channel = 0; channel < channels; ++channel) {
                    const int64_t row = image * channels + channel;
                    y.as_mutable<double>()[static_cast<size_t>(row * points + point)] =
                        interpolate(values.as<double>().data() + row * plane, taps, extents);
                }
            }
    }
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "GridSample",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"align_corners", AttributeKind::integer},
                          {"mode", AttributeKind::text},
                          {"padding_mode", AttributeKind::text}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::grid_sample_op
