#include "ops/broadcast.h"

#include "base/fail.h"

namespace kilter {

Shape row_major_strides(const Shape& shape) {
    Shape strides(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    return strides;
}

BroadcastIndex::BroadcastIndex(const Shape& from, const Shape& to) : to_(to), strides_(to.size(), 0), position_(to.size(), 0) {
    require(from.size() <= to.size(), "cannot broadcast {} to {}", to_string(from), to_string(to));
    const Shape own = row_major_strides(from);
    const size_t shift = to.size() - from.size();
    for (size_t axis = 0; axis < from.size(); ++axis) {
        require(from[axis] == to[axis + shift] || from[axis] == 1, "cannot broadcast {} to {}", to_string(from),
                to_string(to));
        strides_[axis + shift] = from[axis] == 1 ? 0 : own[axis];
    }
}

void BroadcastIndex::next() {
    for (size_t axis = to_.size(); axis-- > 0;) {
        offset_ += strides_[axis];
        if (++position_[axis] < to_[axis]) return;
        offset_ -= strides_[axis] * to_[axis];
        position_[axis] = 0;
    }
}

}  // namespace kilter
