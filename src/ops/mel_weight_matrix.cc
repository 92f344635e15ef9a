// MelWeightMatrix: triangular filters that take a linear spectrum to mel-spaced bins.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/movement.h"

namespace kilter::mel_weight_matrix_op {

DType result_dtype(const Attributes& attributes) {
    return dtype_from_onnx(attributes.get_int("output_datatype", 1));
}

void infer(InferContext& context) {
    const auto bins = context.ints(0);
    const auto length = context.ints(1);
    const auto number = [](const auto& list) { return list && list->size() == 1 && (*list)[0] >= 0; };
    context.set_output(
        0, result_dtype(context.attributes()),
        {number(length) ? Dim((*length)[0] / 2 + 1) : Dim(), number(bins) ? Dim((*bins)[0]) : Dim()});
}

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

void kernel(KernelContext& context) {
    for (size_t i = 0; i < 5; ++i) require(context.input(i).size() == 1, "input {} must be one number", i);
    const int64_t bins = context.input(0).to_ints()[0];
    const int64_t length = context.input(1).to_ints()[0];
    const int64_t rate = context.input(2).to_ints()[0];
    require(bins >= 0 && length >= 0 && rate > 0 && length < (int64_t{1} << 40),
            "{} bins, length {} and rate {} make no filters", bins, length, rate);
    const double low = to_mel(context.input(3).to_doubles()[0]);
    const double high = to_mel(context.input(4).to_doubles()[0]);
    const DType dtype = result_dtype(context.attributes());
    const Shape shape{length / 2 + 1, bins};
    require_reasonable_size(dtype, shape);
    Tensor y = Tensor::filled(dtype, shape, 0);
    const auto edge = [&](int64_t i) {  // row at which filter i begins, filter i-1 peaks and filter i-2 ends
        const double mel = low + static_cast<double>(i) * (high - low) / static_cast<double>(bins + 2);
        const double at =
            std::floor(static_cast<double>(length + 1) * to_hertz(mel) / static_cast<double>(rate));
        require(at >= 0 && at <= static_cast<double>(shape[0]),
                "the edges of the filters lie outside the spectrum");
        return static_cast<int64_t>(at);
    };
    const auto put = [&](int64_t row, int64_t column, double value) {
        if (row < shape[0]) store_double(dtype, y.raw_mutable(), row * bins + column, value);
    };
    for (int64_t i = 0; i < bins; ++i) {
        const int64_t begin = edge(i);
        const int64_t peak = edge(i + 1);
        const int64_t end = edge(i + 2);
        if (begin == peak) put(peak, i, 1);
        for (int64_t row = begin; begin < peak && row <= peak; ++row)
            put(row, i, static_cast<double>(row - begin) / static_cast<double>(peak - begin));
        for (int64_t row = peak; row < end; ++row)
            put(row, i, static_cast<double>(end - row) / static_cast<double>(end - peak));
    }
    context.set_output(0, std::move(y));
}

KILTER_OP({.name = "MelWeightMatrix",
           .min_inputs = 5,
           .max_inputs = 5,
           .attributes = {{"output_datatype", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::mel_weight_matrix_op
