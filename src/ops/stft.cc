// STFT: Fourier transforms of windowed frames that slide over a signal [batch, length, 1 or 2].
#include "base/convert.h"
#include "base/fail.h"
#include "ops/fourier.h"
#include "ops/movement.h"

namespace kilter::stft_op {

struct Frames {
    int64_t length, step, count, bins;
};

Frames frames_of(int64_t signal, int64_t step, int64_t length, bool onesided) {
    require(length > 0 && step > 0 && length <= signal, "frames of {} with step {} do not fit a signal of {}",
            length, step, signal);
    return {length, step, (signal - length) / step + 1, onesided ? length / 2 + 1 : length};
}

bool is_onesided(const Attributes& attributes) { return attributes.get_int("onesided", 1) != 0; }

void infer(InferContext& context) {
    const std::optional<Dims>& x = context.shape(0);
    Dims shape{x && x->size() == 3 ? (*x)[0] : Dim(), Dim(), Dim(), Dim(2)};
    require(!x || x->size() == 3, "expected a signal of rank 3, found {}", to_string(x.value_or(Dims())));
    const auto step = context.ints(1);
    Dim length = x ? (*x)[1] : Dim();
    if (context.has_input(3)) {
        const auto given = context.ints(3);
        length = given && given->size() == 1 ? Dim((*given)[0]) : Dim();
    } else if (context.has_input(2)) {
        length = context.rank(2) == 1 ? (*context.shape(2))[0] : Dim();
    }
    if (x && (*x)[1].known() && step && step->size() == 1 && length.known()) {
        const Frames frames =
            frames_of((*x)[1].value, (*step)[0], length.value, is_onesided(context.attributes()));
        shape[1] = frames.count;
        shape[2] = frames.bins;
    }
    context.set_output(0, context.dtype(0), std::move(shape));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() == 3 && (x.dim(2) == 1 || x.dim(2) == 2), "expected a signal of rank 3, found {}",
            to_string(x.shape()));
    const auto number = [&](size_t index) {
        require(context.input(index).size() == 1, "frame_step and frame_length must be one number each");
        return context.input(index).to_ints()[0];
    };
    const Tensor window = context.has_input(2) ? context.input(2) : Tensor();
    const int64_t length = context.has_input(3) ? number(3) : window.empty() ? x.dim(1) : window.size();
    require(window.empty() || window.size() == length, "a window of {} for frames of {}", window.size(),
            length);
    const Frames frames = frames_of(x.dim(1), number(1), length, is_onesided(context.attributes()));
    const Shape shape{x.dim(0), frames.count, frames.bins, 2};
    require_reasonable_size(x.dtype(), shape);
    Tensor& y = context.output(0, x.dtype(), shape);
    const int64_t parts = x.dim(2);
    int64_t next = 0;
    for (int64_t batch = 0; batch < x.dim(0); ++batch) {
        for (int64_t frame = 0; frame < frames.count; ++frame) {
            std::vector<std::complex<double>> signal(static_cast<size_t>(frames.length));
            for (int64_t n = 0; n < frames.length; ++n) {
                const int64_t at = (batch * x.dim(1) + frame * frames.step + n) * parts;
                const double weight = window.empty() ? 1 : load_double(window.dtype(), window.raw(), n);
                signal[static_cast<size_t>(n)] = {
                    weight * load_double(x.dtype(), x.raw(), at),
                    parts == 2 ? weight * load_double(x.dtype(), x.raw(), at + 1) : 0.0};
            }
            for (const std::complex<double>& bin :
                 fourier_transform(signal, static_cast<size_t>(frames.bins), false)) {
                store_double(y.dtype(), y.raw_mutable(), next++, bin.real());
                store_double(y.dtype(), y.raw_mutable(), next++, bin.imag());
            }
        }
    }
}

KILTER_OP({.name = "STFT",
           .min_inputs = 2,
           .max_inputs = 4,
           .attributes = {{"onesided", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::stft_op
