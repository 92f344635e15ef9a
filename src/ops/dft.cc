// DFT: the discrete Fourier transform along one axis. The last axis holds real and imaginary parts (or
// real ones only).
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/fourier.h"
#include "ops/movement.h"

namespace kilter {

std::vector<std::complex<double>> fourier_transform(const std::vector<std::complex<double>>& signal,
                                                    size_t bins, bool inverse) {
    const size_t length = signal.size();
    // All angles are multiples of one turn over the length.
    std::vector<std::complex<double>> turns(length);
    for (size_t i = 0; i < length; ++i)
        turns[i] =
            std::polar(1.0, (inverse ? 2 : -2) * M_PI * static_cast<double>(i) / static_cast<double>(length));
    std::vector<std::complex<double>> result(bins);
    for (size_t k = 0; k < bins; ++k) {
        std::complex<double> sum = 0;
        for (size_t n = 0; n < length; ++n) sum += signal[n] * turns[k * n % length];
        result[k] = inverse ? sum / static_cast<double>(length) : sum;
    }
    return result;
}

namespace {

struct Form {
    bool inverse, onesided;
    bool real_result() const { return inverse && onesided; }
};

Form form_of(const Attributes& attributes) {
    return {attributes.get_int("inverse", 0) != 0, attributes.get_int("onesided", 0) != 0};
}

size_t signal_axis(int64_t axis, int64_t rank) {
    require(rank >= 2, "expected a signal and its parts, found a tensor of rank {}", rank);
    const int64_t normal = normalize_axis(axis, rank);
    require(normal < rank - 1, "axis {} holds the parts of the numbers, not a signal", axis);
    return static_cast<size_t>(normal);
}

int64_t bins_of(const Form& form, int64_t length) {
    return form.onesided && !form.inverse ? length / 2 + 1 : length;
}

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    if (!x) return context.set_output(0, context.dtype(0));
    const Form form = form_of(context.attributes());
    Dims shape = *x;
    const auto length = context.has_input(1) ? context.ints(1) : std::nullopt;
    const auto axes = context.has_input(2) ? context.ints(2) : std::optional(std::vector<int64_t>{-2});
    require(!shape.empty(), "expected a signal, found a scalar");
    shape.back() = form.real_result() ? 1 : 2;
    if (!axes || axes->size() != 1) {
        std::fill(shape.begin(), shape.end() - 1, Dim());
        return context.set_output(0, context.dtype(0), std::move(shape));
    }
    Dim& extent = shape[signal_axis((*axes)[0], context.rank(0))];
    if (context.has_input(1))
        extent = length && length->size() == 1 && (*length)[0] > 0 ? Dim((*length)[0]) : Dim();
    else if (form.real_result() && extent.known() && extent.value < (int64_t{1} << 60))
        extent = std::max<int64_t>(2 * (extent.value - 1), 0);
    if (extent.known())
        extent = bins_of(form, extent.value);
    else if (form.onesided)
        extent = Dim();
    context.set_output(0, context.dtype(0), std::move(shape));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Form form = form_of(context.attributes());
    const auto number = [&](size_t index, int64_t absent) {
        if (!context.has_input(index)) return absent;
        require(context.input(index).size() == 1, "dft_length and axis must be one number each");
        return context.input(index).to_ints()[0];
    };
    const size_t axis = signal_axis(number(2, -2), x.rank());
    const int64_t extent = x.shape()[axis];
    const int64_t length = number(1, form.real_result() ? 2 * (extent - 1) : extent);
    const int64_t parts = x.shape().back();
    require(length > 0 && (parts == 1 || parts == 2), "cannot transform {} with length {}",
            to_string(x.shape()), length);
    Shape shape = x.shape();
    shape[axis] = bins_of(form, length);
    shape.back() = form.real_result() ? 1 : 2;
    require_reasonable_size(DType::f64, shape);
    require_reasonable_size(DType::complex128, {length});
    Tensor& y = context.output(0, x.dtype(), shape);
    const int64_t inner = element_count(std::span(x.shape()).subspan(axis + 1)) / parts;
    const int64_t outer = element_count(std::span(x.shape()).first(axis));
    for (int64_t i = 0; i < outer * inner; ++i) {
        std::vector<std::complex<double>> signal(static_cast<size_t>(length));
        const int64_t given = std::min(form.real_result() ? length / 2 + 1 : length, extent);
        for (int64_t n = 0; n < given; ++n) {
            const int64_t at = ((i / inner * extent + n) * inner + i % inner) * parts;
            signal[static_cast<size_t>(n)] = {load_double(x.dtype(), x.raw(), at),
                                              parts == 2 ? load_double(x.dtype(), x.raw(), at + 1) : 0.0};
            // One side given: the other is its mirror image.
            if (form.real_result() && n > 0 && length - n > n)
                signal[static_cast<size_t>(length - n)] = std::conj(signal[static_cast<size_t>(n)]);
        }
        const auto bins = fourier_transform(signal, static_cast<size_t>(shape[axis]), form.inverse);
        for (int64_t k = 0; k < shape[axis]; ++k) {
            const int64_t at = ((i / inner * shape[axis] + k) * inner + i % inner) * shape.back();
            store_double(y.dtype(), y.raw_mutable(), at, bins[static_cast<size_t>(k)].real());
            if (shape.back() == 2)
                store_double(y.dtype(), y.raw_mutable(), at + 1, bins[static_cast<size_t>(k)].imag());
        }
    }
}

KILTER_OP({.name = "DFT",
           .min_inputs = 1,
           .max_inputs = 3,
           .attributes = {{"inverse", AttributeKind::integer}, {"onesided", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace
}  // namespace kilter
