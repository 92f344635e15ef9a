// LpPool: the p-norm of each window.
#include <cmath>

#include "base/fail.h"
#include "ops/pool.h"

namespace kilter::lp_pool_op {

void kernel(KernelContext& context) {
    const int64_t p = context.attributes().get_int("p", 2);
    require(p >= 1, "attribute 'p' must be 1 or more, found {}", p);
    run_pool(context, [&](const Pool& pool, const double* elements, const Triple& start) {
        double sum = 0;
        for_each_element(pool, start, [&](int64_t index) {
            sum += std::pow(std::fabs(elements[index]), static_cast<double>(p));
        });
        return std::pow(sum, 1.0 / static_cast<double>(p));
    });
}

KILTER_OP({.name = "LpPool",
           .attributes = {{"auto_pad", AttributeKind::text},
                          {"ceil_mode", AttributeKind::integer},
                          {"dilations", AttributeKind::integers},
                          {"kernel_shape", AttributeKind::integers, true},
                          {"p", AttributeKind::integer},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers}},
           .infer = infer_pool,
           .kernel = kernel});

}  // namespace kilter::lp_pool_op
