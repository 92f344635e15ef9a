#include "ops/broadcast.h"

#include "base/fail.h"

namespace kilter {

Shape row_major_strides(const Shape& shape) {
    Shape strides(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    return strides;
}

Shape broadcast_strides(const Shape& from, const Shape& to) {
    require(from.size() <= to.size(), "cannot broadcast {} to {}", to_string(from), to_string(to));
    const Shape own = row_major_strides(from);
    const size_t shift = to.size() - from.size();
    Shape strides(to.size(), 0);
    for (size_t axis = 0; axis < from.size(); ++axis) {
        require(from[axis] == to[axis + shift] || from[axis] == 1, "cannot broadcast {} to {}",
                to_string(from), to_string(to));
        strides[axis + shift] = from[axis] == 1 ? 0 : own[axis];
    }
    return strides;
}

BroadcastIndex::BroadcastIndex(const Shape& from, const Shape& to)
    : to_(to), strides_(broadcast_strides(from, to)), position_(to.size(), 0) {}

void BroadcastIndex::next() {
    for (size_t axis = to_.size(); axis-- > 0;) {
        offset_ += strides_[axis];
        if (++position_[axis] < to_[axis]) return;
        offset_ -= strides_[axis] * to_[axis];
        position_[axis] = 0;
    }
}

BroadcastRows::BroadcastRows(const std::vector<Shape>& from, const Shape& to) : offsets_(from.size(), 0) {
    std::vector<Shape> by_operand;
    by_operand.reserve(from.size());
    for (const Shape& shape : from) by_operand.push_back(broadcast_strides(shape, to));
    for (size_t axis = 0; axis < to.size(); ++axis) {
        if (to[axis] == 1) continue;
        Shape strides;
        for (const Shape& operand : by_operand) strides.push_back(operand[axis]);
        bool mergeable = !outer_.empty();
        for (size_t i = 0; i < strides.size() && mergeable; ++i)
            mergeable = strides_.back()[i] == strides[i] * to[axis];
        if (mergeable) {
            outer_.back() *= to[axis];
            strides_.back() = std::move(strides);
        } else {
            outer_.push_back(to[axis]);
            strides_.push_back(std::move(strides));
        }
    }
    steps_ = outer_.empty() ? Shape(from.size(), 0) : strides_.back();
    if (!outer_.empty()) {
        length_ = outer_.back();
        outer_.pop_back();
        strides_.pop_back();
    }
    position_.assign(outer_.size(), 0);
    for (const int64_t dim : outer_) count_ *= dim;
}

void BroadcastRows::next() {
    for (size_t axis = outer_.size(); axis-- > 0;) {
        for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] += strides_[axis][i];
        if (++position_[axis] < outer_[axis]) return;
        for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] -= strides_[axis][i] * outer_[axis];
        position_[axis] = 0;
    }
}

}  // namespace kilter
