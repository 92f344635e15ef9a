// HannWindow, HammingWindow and BlackmanWindow: weights of a signal frame, periodic or symmetric.
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "graph/onnx_dtype.h"
#include "ops/movement.h"

namespace kilter::signal_window_op {

DType result_dtype(const Attributes& attributes) {
    return dtype_from_onnx(attributes.get_int("output_datatype", 1));
}

void infer(InferContext& context) {
    const auto size = context.ints(0);
    require(!size || (size->size() == 1 && (*size)[0] >= 0),
            "the size of a window must be one number, not negative");
    context.set_output(0, result_dtype(context.attributes()), {size ? Dim((*size)[0]) : Dim()});
}

double weight(const std::string& op, double phase) {
    if (op == "HannWindow") return 0.5 - 0.5 * std::cos(phase);
    if (op == "HammingWindow") return 25.0 / 46.0 - 21.0 / 46.0 * std::cos(phase);
    return 0.42 - 0.5 * std::cos(phase) + 0.08 * std::cos(2 * phase);
}

void kernel(KernelContext& context) {
    const std::vector<int64_t> sizes = context.input(0).to_ints();
    require(sizes.size() == 1 && sizes[0] >= 0, "the size of a window must be one number, not negative");
    const DType dtype = result_dtype(context.attributes());
    require_reasonable_size(dtype, {sizes[0]});
    Tensor& y = context.output(0, dtype, {sizes[0]});
    const bool periodic = context.attributes().get_int("periodic", 1) != 0;
    const double period = std::max<double>(static_cast<double>(sizes[0]) - (periodic ? 0 : 1), 1);
    for (int64_t i = 0; i < y.size(); ++i)
        store_double(dtype, y.raw_mutable(), i,
                     weight(context.node().op(), 2 * M_PI * static_cast<double>(i) / period));
}

const std::vector<AttributeSpec> kAttributes{{"output_datatype", AttributeKind::integer},
                                             {"periodic", AttributeKind::integer}};

KILTER_OP({.name = "HannWindow", .attributes = kAttributes, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "HammingWindow", .attributes = kAttributes, .infer = infer, .kernel = kernel});
KILTER_OP({.name = "BlackmanWindow", .attributes = kAttributes, .infer = infer, .kernel = kernel});

}  // namespace kilter::signal_window_op
