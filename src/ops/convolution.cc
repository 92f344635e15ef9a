#include "ops/convolution.h"

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter {
namespace {

Dims spatial_of(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }
Shape spatial_of(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

// Group count, after the checks that Conv and ConvTranspose share.
int64_t check_ranks(const Attributes& attributes, const Dims& x, const Dims& weights) {
    require(x.size() >= 3 && x.size() <= 5, "the input must have 1 to 3 spatial axes, found shape {}",
            to_string(x));
    require(weights.size() == x.size(), "the input {} and the weights {} must have the same rank",
            to_string(x), to_string(weights));
    const int64_t groups = attributes.get_int("group", 1);
    require(groups >= 1 && groups <= kWindowLimit, "attribute 'group' must be 1 or more, found {}", groups);
    for (const Dims* dims : {&x, &weights})
        for (const Dim& dim : *dims)
            require(dim.value <= kWindowLimit, "dimension {} is larger than {}", dim.value, kWindowLimit);
    return groups;
}

// The kernel is the spatial part of the weights; attribute kernel_shape, when present, must say the same.
std::vector<int64_t> kernel_of(const Attributes& attributes, const Dims& weights) {
    const std::vector<int64_t> declared = attributes.get_ints("kernel_shape");
    const size_t rank = weights.size() - 2;
    require(declared.empty() || declared.size() == rank,
            "attribute 'kernel_shape' must have {} entries, found {}", rank, declared.size());
    for (const int64_t extent : declared) require(extent >= 1, "attribute 'kernel_shape' holds {}", extent);
    std::vector<int64_t> kernel;
    for (size_t axis = 0; axis < rank; ++axis) {
        const Dim& dim = weights[axis + 2];
        require(declared.empty() || agree(dim, declared[axis]),
                "attribute 'kernel_shape' says {} along spatial axis {} but the weights are {}",
                declared.empty() ? 0 : declared[axis], axis, to_string(weights));
        kernel.push_back(dim.known() || declared.empty() ? dim.value : declared[axis]);
    }
    return kernel;
}

// The window of a transposed convolution with its pads settled; `output` receives the spatial extents.
Window transposed_window(const Attributes& attributes, const Dims& x, const Dims& weights, Dims& output) {
    Window window = read_window(attributes, kernel_of(attributes, weights));
    const size_t rank = window.rank();
    std::vector<int64_t> extra = attributes.get_ints("output_padding");
    if (extra.empty()) extra.assign(rank, 0);
    require(extra.size() == rank, "attribute 'output_padding' must have {} entries, found {}", rank,
            extra.size());
    std::vector<int64_t> wanted = attributes.get_ints("output_shape");
    require(wanted.empty() || wanted.size() == rank,
            "attribute 'output_shape' must have {} entries, found {}", rank, wanted.size());
    const bool same = window.auto_pad == AutoPad::same_upper || window.auto_pad == AutoPad::same_lower;
    output.clear();
    for (size_t axis = 0; axis < rank; ++axis) {
        const Dim& input = x[axis + 2];
        const int64_t stride = window.strides[axis];
        require(extra[axis] >= 0 && extra[axis] <= kWindowLimit, "attribute 'output_padding' holds {}",
                extra[axis]);
        require(wanted.empty() || (wanted[axis] >= 1 && wanted[axis] <= kWindowLimit),
                "attribute 'output_shape' holds {}", wanted.empty() ? 0 : wanted[axis]);
        if (!input.known() || window.kernel[axis] < 0) {
            output.emplace_back(wanted.empty() ? Dim() : Dim(wanted[axis]));
            continue;
        }
        require(input.value >= 1, "spatial axis {} of the input is empty", axis);
        const int64_t full = stride * (input.value - 1) + extra[axis] + window.reach(axis);
        if (wanted.empty() && !same) {
            const int64_t extent = full - window.pads_begin[axis] - window.pads_end[axis];
            require(extent >= 1,
                    "pads {} and {} leave nothing of spatial axis {}, whose extent is {} before padding",
                    window.pads_begin[axis], window.pads_end[axis], axis, full);
            output.emplace_back(extent);
            continue;
        }
        const int64_t extent = wanted.empty() ? input.value * stride : wanted[axis];
        const int64_t total = std::max<int64_t>(full - extent, 0);
        window.pads_begin[axis] = window.auto_pad == AutoPad::same_upper ? total / 2 : total - total / 2;
        window.pads_end[axis] = total - window.pads_begin[axis];
        output.emplace_back(extent);
    }
    return window;
}

Convolution describe_convolution(const Window& window, const Shape& x, const Shape& y, int64_t groups) {
    Convolution c;
    c.batch = x[0];
    c.groups = groups;
    c.inputs = x[1] / groups;
    c.outputs = y[1] / groups;
    c.input = triple(spatial_of(x), 1);
    c.output = triple(spatial_of(y), 1);
    c.kernel = triple(window.kernel, 1);
    c.stride = triple(window.strides, 1);
    c.dilation = triple(window.dilations, 1);
    c.pad = triple(window.pads_begin, 0);
    // A pointwise convolution is the same on a flat image, whose single long row makes the inner loop fast.
    if (c.kernel == Triple{1, 1, 1} && c.stride == Triple{1, 1, 1} && c.pad == Triple{0, 0, 0} &&
        c.input == c.output) {
        c.input = {1, 1, c.input_size()};
        c.output = c.input;
    }
    return c;
}

void fill_bias(Tensor& y, const Tensor& bias) {
    if (bias.empty()) return;
    const std::span<double> values = y.as_mutable<double>();
    const std::span<const double> biases = bias.as<double>();
    const int64_t plane = extent(y.shape(), 2, y.shape().size());
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = biases[(i / static_cast<size_t>(plane)) % biases.size()];
}

// One output channel of one image: every tap of the kernel adds a shifted, scaled copy of an input plane.
void convolve_plane(const Convolution& c, const double* x, const double* weights, double* y) {
    for (int64_t channel = 0; channel < c.inputs; ++channel, x += c.input_size())
        for (int64_t kz = 0; kz < c.kernel[0]; ++kz)
            for (int64_t ky = 0; ky < c.kernel[1]; ++ky)
                for (int64_t kx = 0; kx < c.kernel[2]; ++kx) {
                    const double weight = *weights++;
                    const Triple offset{kz * c.dilation[0] - c.pad[0], ky * c.dilation[1] - c.pad[1],
                                        kx * c.dilation[2] - c.pad[2]};
                    std::array<Range, 3> range;
                    for (size_t axis = 0; axis < 3; ++axis)
                        range[axis] =
                            positions_inside(offset[axis], c.stride[axis], 0, c.input[axis], c.output[axis]);
                    const int64_t step = c.stride[2];
                    for (int64_t oz = range[0].begin; oz < range[0].end; ++oz)
                        for (int64_t oy = range[1].begin; oy < range[1].end; ++oy) {
                            const int64_t row =
                                (oz * c.stride[0] + offset[0]) * c.input[1] + oy * c.stride[1] + offset[1];
                            const double* source = x + row * c.input[2] + offset[2];
                            double* target = y + (oz * c.output[1] + oy) * c.output[2];
                            if (step == 1)
                                for (int64_t ox = range[2].begin; ox < range[2].end; ++ox)
                                    target[ox] += weight * source[ox];
                            else
                                for (int64_t ox = range[2].begin; ox < range[2].end; ++ox)
                                    target[ox] += weight * source[ox * step];
                        }
                }
}

// The transpose of convolve_plane: here the input positions scatter into the output, which is the strided side.
void convolve_transposed_plane(const Convolution& c, const double* x, const double* weights, double* y) {
    const int64_t taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
    for (int64_t channel = 0; channel < c.inputs; ++channel, x += c.input_size()) {
        const double* tap = weights + channel * c.outputs * taps;
        for (int64_t kz = 0; kz < c.kernel[0]; ++kz)
            for (int64_t ky = 0; ky < c.kernel[1]; ++ky)
                for (int64_t kx = 0; kx < c.kernel[2]; ++kx) {
                    const double weight = *tap++;
                    const Triple offset{kz * c.dilation[0] - c.pad[0], ky * c.dilation[1] - c.pad[1],
                                        kx * c.dilation[2] - c.pad[2]};
                    std::array<Range, 3> range;
                    for (size_t axis = 0; axis < 3; ++axis)
                        range[axis] =
                            positions_inside(offset[axis], c.stride[axis], 0, c.output[axis], c.input[axis]);
                    for (int64_t iz = range[0].begin; iz < range[0].end; ++iz)
                        for (int64_t iy = range[1].begin; iy < range[1].end; ++iy) {
                            const int64_t row =
                                (iz * c.stride[0] + offset[0]) * c.output[1] + iy * c.stride[1] + offset[1];
                            double* target = y + row * c.output[2] + offset[2];
                            const double* source = x + (iz * c.input[1] + iy) * c.input[2];
                            for (int64_t ix = range[2].begin; ix < range[2].end; ++ix)
                                target[ix * c.stride[2]] += weight * source[ix];
                        }
                }
    }
}

}  // namespace

Dims conv_dims(const Attributes& attributes, const Dims& x, const Dims& weights,
               const std::optional<Dims>& bias) {
    const int64_t groups = check_ranks(attributes, x, weights);
    if (x[1].known() && weights[1].known())
        require(x[1].value == weights[1].value * groups,
                "weights have {} input channels but the input has {}", weights[1].value * groups, x[1].value);
    require(!weights[0].known() || weights[0].value % groups == 0, "{} output channels cannot form {} groups",
            weights[0].value, groups);
    require_vector(bias, weights[0], "the bias");
    const Window window = read_window(attributes, kernel_of(attributes, weights));
    Dims result{x[0], weights[0]};
    for (Dim& dim : window.output(spatial_of(x))) result.push_back(std::move(dim));
    return result;
}

Dims conv_transpose_dims(const Attributes& attributes, const Dims& x, const Dims& weights,
                         const std::optional<Dims>& bias) {
    const int64_t groups = check_ranks(attributes, x, weights);
    require(agree(x[1], weights[0]), "weights have {} input channels but the input has {}", weights[0].value,
            x[1].value);
    require(!x[1].known() || x[1].value % groups == 0, "{} input channels cannot form {} groups", x[1].value,
            groups);
    const Dim channels = weights[1].known() ? Dim(weights[1].value * groups) : Dim();
    require_vector(bias, channels, "the bias");
    Dims spatial;
    transposed_window(attributes, x, weights, spatial);
    Dims result{x[0], channels};
    result.insert(result.end(), spatial.begin(), spatial.end());
    return result;
}

Tensor conv(const Attributes& attributes, const Tensor& x, const Tensor& weights, const Tensor& bias) {
    const std::optional<Dims> bias_dims = bias.empty() ? std::nullopt : std::optional(to_dims(bias.shape()));
    const Dims dims = conv_dims(attributes, to_dims(x.shape()), to_dims(weights.shape()), bias_dims);
    Window window = read_window(attributes, spatial_of(weights.shape()));
    window.resolve_pads(spatial_of(x.shape()));
    Tensor y = real_zeros(ValueType(DType::f64, dims).static_shape());
    if (y.size() == 0) return y;
    fill_bias(y, bias);
    const Convolution c = describe_convolution(window, x.shape(), y.shape(), attributes.get_int("group", 1));
    const double* source = x.as<double>().data();
    const double* kernel = weights.as<double>().data();
    double* target = y.as_mutable<double>().data();
    const int64_t channels = c.groups * c.outputs;
    const int64_t kernel_size = c.inputs * c.kernel[0] * c.kernel[1] * c.kernel[2];
#pragma omp parallel for schedule(static)
    for (int64_t plane = 0; plane < c.batch * channels; ++plane) {
        const int64_t image = plane / channels;
        const int64_t channel = plane % channels;
        const int64_t group = channel / c.outputs;
        convolve_plane(c, source + (image * c.groups + group) * c.inputs * c.input_size(),
                       kernel + channel * kernel_size, target + plane * c.output_size());
    }
    return y;
}

Tensor conv_transpose(const Attributes& attributes, const Tensor& x, const Tensor& weights,
                      const Tensor& bias) {
    const std::optional<Dims> bias_dims = bias.empty() ? std::nullopt : std::optional(to_dims(bias.shape()));
    const Dims dims =
        conv_transpose_dims(attributes, to_dims(x.shape()), to_dims(weights.shape()), bias_dims);
    Dims spatial;
    const Window window =
        transposed_window(attributes, to_dims(x.shape()), to_dims(weights.shape()), spatial);
    Tensor y = real_zeros(ValueType(DType::f64, dims).static_shape());
    if (y.size() == 0) return y;
    fill_bias(y, bias);
    const Convolution c = describe_convolution(window, x.shape(), y.shape(), attributes.get_int("group", 1));
    const double* source = x.as<double>().data();
    const double* kernel = weights.as<double>().data();
    double* target = y.as_mutable<double>().data();
    const int64_t channels = c.groups * c.outputs;
    const int64_t taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
#pragma omp parallel for schedule(static)
    for (int64_t plane = 0; plane < c.batch * channels; ++plane) {
        const int64_t image = plane / channels;
        const int64_t channel = plane % channels;
        const int64_t group = channel / c.outputs;
        const int64_t within = channel % c.outputs;
        convolve_transposed_plane(c, source + (image * c.groups + group) * c.inputs * c.input_size(),
                                  kernel + (group * c.inputs * c.outputs + within) * taps,
                                  target + plane * c.output_size());
    }
    return y;
}

}  // namespace kilter
