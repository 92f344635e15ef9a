// AveragePool: the mean of each window, over its real elements or, with count_include_pad, over the padding too.
#include "ops/pool.h"

namespace kilter::average_pool_op {

// Taps that lie in the input or its declared padding; what ceil_mode looks at beyond that is never counted.
int64_t padded_taps(const Pool& pool, const Triple& start) {
    int64_t count = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
        const int64_t end = pool.input[axis] + pool.pad_end[axis];
        const Range taps = taps_inside(start[axis] + pool.pad[axis], pool.dilation[axis], pool.kernel[axis],
                                       end + pool.pad[axis]);
        count *= taps.end - taps.begin;
    }
    return count;
}

void kernel(KernelContext& context) {
    const bool include_pad = context.attributes().get_int("count_include_pad") != 0;
    run_pool(context, [&](const Pool& pool, const double* elements, const Triple& start) {
        double sum = 0;
        int64_t count = 0;
        for_each_element(pool, start, [&](int64_t index) {
            sum += elements[index];
            ++count;
        });
        if (include_pad) count = padded_taps(pool, start);
        return count == 0 ? 0.0 : sum / static_cast<double>(count);
    });
}

KILTER_OP({.name = "AveragePool",
           .attributes = {{"auto_pad", AttributeKind::text},
                          {"ceil_mode", AttributeKind::integer},
                          {"count_include_pad", AttributeKind::integer},
                          {"dilations", AttributeKind::integers},
                          {"kernel_shape", AttributeKind::integers, true},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers}},
           .infer = infer_pool,
           .kernel = kernel});

}  // namespace kilter::average_pool_op
