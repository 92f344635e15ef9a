#include "ops/window.h"

#include <algorithm>

#include "base/fail.h"

namespace kilter {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a - 1) / b + 1; }

AutoPad parse_auto_pad(const std::string& text) {
    if (text.empty() || text == "NOTSET") return AutoPad::notset;
    if (text == "VALID") return AutoPad::valid;
    if (text == "SAME_UPPER") return AutoPad::same_upper;
    if (text == "SAME_LOWER") return AutoPad::same_lower;
    fail("attribute 'auto_pad' must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, found '{}'", text);
}

// A list attribute with one entry per axis, each between `low` and kWindowLimit.
std::vector<int64_t> list(const Attributes& attributes, std::string_view name, size_t count, int64_t low,
                          int64_t absent) {
    std::vector<int64_t> values = attributes.get_ints(name);
    if (values.empty()) values.assign(count, absent);
    require(values.size() == count, "attribute '{}' must have {} entries, found {}", name, count,
            values.size());
    for (const int64_t value : values)
        require(value >= low && value <= kWindowLimit, "attribute '{}' holds {}, expected {} or more", name,
                value, low);
    return values;
}

}  // namespace

Window read_window(const Attributes& attributes, std::vector<int64_t> kernel) {
    const size_t rank = kernel.size();
    require(rank >= 1 && rank <= 3, "the input must have 1 to 3 spatial axes, found {}", rank);
    for (const int64_t extent : kernel)
        require(extent == -1 || (extent >= 1 && extent <= kWindowLimit), "kernel extent {} is not positive",
                extent);
    Window window;
    window.kernel = std::move(kernel);
    window.strides = list(attributes, "strides", rank, 1, 1);
    window.dilations = list(attributes, "dilations", rank, 1, 1);
    window.auto_pad = parse_auto_pad(attributes.get_string("auto_pad"));
    std::vector<int64_t> pads(2 * rank, 0);
    // With auto_pad the explicit pads have no meaning; some exporters still write them.
    if (window.auto_pad == AutoPad::notset) pads = list(attributes, "pads", 2 * rank, 0, 0);
    window.pads_begin.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(rank));
    window.pads_end.assign(pads.begin() + static_cast<ptrdiff_t>(rank), pads.end());
    window.ceil_mode = attributes.get_int("ceil_mode") != 0;
    return window;
}

std::vector<int64_t> pool_kernel(const Attributes& attributes, size_t spatial_rank) {
    std::vector<int64_t> kernel = attributes.get_ints("kernel_shape");
    require(kernel.size() == spatial_rank,
            "attribute 'kernel_shape' has {} entries but the input has {} spatial axes", kernel.size(),
            spatial_rank);
    for (const int64_t extent : kernel) require(extent >= 1, "kernel extent {} is not positive", extent);
    return kernel;
}

void require_pads_inside_kernel(const Window& window) {
    for (size_t axis = 0; axis < window.rank(); ++axis)
        require(std::max(window.pads_begin[axis], window.pads_end[axis]) < window.reach(axis),
                "pads {} and {} of spatial axis {} must be smaller than the kernel extent {}",
                window.pads_begin[axis], window.pads_end[axis], axis, window.reach(axis));
}

void Window::resolve_pads(const Shape& spatial) {
    if (auto_pad != AutoPad::same_upper && auto_pad != AutoPad::same_lower) return;
    for (size_t axis = 0; axis < rank(); ++axis) {
        const int64_t positions = ceil_div(spatial[axis], strides[axis]);
        const int64_t total =
            std::max<int64_t>((positions - 1) * strides[axis] + reach(axis) - spatial[axis], 0);
        const int64_t smaller = total / 2;
        pads_begin[axis] = auto_pad == AutoPad::same_upper ? smaller : total - smaller;
        pads_end[axis] = total - pads_begin[axis];
    }
}

Dim Window::output(size_t axis, const Dim& input) const {
    require(input.value <= kWindowLimit, "spatial axis {} has extent {}, more than {}", axis, input.value,
            kWindowLimit);
    const int64_t stride = strides[axis];
    const bool same = auto_pad == AutoPad::same_upper || auto_pad == AutoPad::same_lower;
    if (same && stride == 1) return input;
    if (same && input.known()) return ceil_div(input.value, stride);
    if (same || kernel[axis] < 0) return {};
    const int64_t pads = pads_begin[axis] + pads_end[axis];
    if (stride == 1 && pads == reach(axis) - 1) return input;
    if (!input.known()) return {};
    const int64_t room = input.value + pads - reach(axis);
    require(room >= 0,
            "a kernel of extent {} does not fit the input of extent {} (with padding) along spatial axis {}",
            reach(axis), input.value + pads, axis);
    if (!ceil_mode) return room / stride + 1;
    int64_t positions = ceil_div(room, stride) + 1;
    // A window that would start in the padding at the end is left out.
    if ((positions - 1) * stride >= input.value + pads_begin[axis]) --positions;
    return positions;
}

Dims Window::output(const Dims& spatial) const {
    require(spatial.size() == rank(), "the input has {} spatial axes but the kernel has {}", spatial.size(),
            rank());
    Dims dims;
    for (size_t axis = 0; axis < rank(); ++axis) dims.push_back(output(axis, spatial[axis]));
    return dims;
}

Triple triple(std::span<const int64_t> values, int64_t absent) {
    Triple result{absent, absent, absent};
    std::ranges::copy(values, result.end() - static_cast<ptrdiff_t>(values.size()));
    return result;
}

Range positions_inside(int64_t tap_offset, int64_t stride, int64_t pad, int64_t input, int64_t output) {
    // Position p reads element p * stride + tap_offset - pad.
    const int64_t last = input - 1 + pad - tap_offset;
    Range range;
    range.begin = std::min(ceil_div(pad - tap_offset, stride), output);
    range.end = last < 0 ? range.begin : std::max(range.begin, std::min(last / stride + 1, output));
    return range;
}

Range taps_inside(int64_t start, int64_t dilation, int64_t kernel, int64_t input) {
    Range range;
    range.begin = std::min(ceil_div(-start, dilation), kernel);
    const int64_t last = input - 1 - start;
    range.end = last < 0 ? range.begin : std::max(range.begin, std::min(last / dilation + 1, kernel));
    return range;
}

}  // namespace kilter
