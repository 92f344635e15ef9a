#include "calibration/walk.h"

#include <algorithm>
#include <functional>

namespace kilter {

Walk::Walk(std::span<const int64_t> shape, std::span<const int64_t> strides, int channel_axis) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        const bool channel = static_cast<int>(axis) == channel_axis;
        if (channel) channels = shape[axis];
        if (shape[axis] > 1) dimensions.push_back({shape[axis], strides[axis], channel});
    }
    std::ranges::stable_sort(dimensions, std::greater<>(), &Dimension::stride);
    std::vector<Dimension> joined;
    for (const Dimension& next : dimensions) {
        if (!joined.empty() && !next.channel && !joined.back().channel &&
            joined.back().stride == next.size * next.stride)
            joined.back() = {joined.back().size * next.size, next.stride, false};
        else
            joined.push_back(next);
    }
    dimensions = std::move(joined);
    if (dimensions.empty()) dimensions.push_back({1, 1, false});
    contiguous = dimensions.back().stride == 1;
}

std::vector<float> dense_copy(const float* data, std::span<const int64_t> shape,
                              std::span<const int64_t> strides) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    std::vector<float> copy(static_cast<size_t>(count));
    std::vector<int64_t> index(shape.size());
    int64_t offset = 0;
    for (float& value : copy) {
        value = data[offset];
        for (size_t axis = shape.size(); axis-- > 0;) {
            offset += strides[axis];
            if (++index[axis] < shape[axis]) break;
            offset -= shape[axis] * strides[axis];
            index[axis] = 0;
        }
    }
    return copy;
}

}  // namespace kilter
