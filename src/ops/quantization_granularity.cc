#include "ops/quantization_granularity.h"

#include "base/fail.h"

namespace kilter {

QuantizationGranularity::QuantizationGranularity(const Shape& x, const Shape& scale, int64_t axis,
                                                 int64_t block_size) {
    require(block_size >= 0, "block_size must not be {}", block_size);
    const bool single = element_count(scale) == 1 && scale.size() <= 1;
    if (single && block_size == 0) return;
    require(!x.empty(), "a scalar takes one scale, found {}", to_string(scale));
    const auto at = static_cast<size_t>(normalize_axis(axis, static_cast<int64_t>(x.size())));
    inner_ = element_count(std::span(x).subspan(at + 1));
    extent_ = std::max<int64_t>(x[at], 1);
    inner_ = std::max<int64_t>(inner_, 1);
    if (block_size == 0) {
        require(scale.size() == 1 && scale[0] == x[at], "scales of shape {} do not fit axis {} of {}",
                to_string(scale), axis, to_string(x));
        return;
    }
    Shape expected = x;
    expected[at] = x[at] / block_size + (x[at] % block_size != 0 ? 1 : 0);
    require(scale == expected, "scales of shape {} do not fit blocks of {} on axis {} of {}",
            to_string(scale), block_size, axis, to_string(x));
    block_ = block_size;
    scales_ = std::max<int64_t>(expected[at], 1);
    outer_factor_ = 1;
    inner_factor_ = inner_;
    inner_step_ = 1;
}

}  // namespace kilter
