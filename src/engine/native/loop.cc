#include "engine/native/loop.h"

#include "base/fail.h"
#include "ops/broadcast.h"

namespace kilter::engine {

int64_t Loop::rows() const {
    int64_t count = 1;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) count *= sizes[i];
    return count;
}

Loop broadcast_loop(const std::vector<Shape>& operands, const Shape& result) {
    require(operands.size() <= kMostOperands, "internal error: a loop over {} operands", operands.size());
    std::vector<Shape> full;
    for (const Shape& shape : operands) {
        const Shape own = row_major_strides(shape);
        Shape strides(result.size(), 0);
        for (size_t i = 0; i < shape.size(); ++i)
            if (shape[i] != 1) strides[i + result.size() - shape.size()] = own[i];
        full.push_back(std::move(strides));
    }
    Loop loop;
    loop.strides.resize(operands.size());
    for (size_t axis = 0; axis < result.size(); ++axis) {
        const int64_t size = result[axis];
        if (size == 1) continue;
        bool joins = !loop.sizes.empty();
        for (size_t i = 0; i < full.size() && joins; ++i)
            joins = loop.strides[i].back() == full[i][axis] * size;
        if (joins) {
            loop.sizes.back() *= size;
            for (size_t i = 0; i < full.size(); ++i) loop.strides[i].back() = full[i][axis];
        } else {
            loop.sizes.push_back(size);
            for (size_t i = 0; i < full.size(); ++i) loop.strides[i].push_back(full[i][axis]);
        }
    }
    if (loop.sizes.empty()) {
        loop.sizes.push_back(1);
        for (Shape& strides : loop.strides) strides.push_back(0);
    }
    return loop;
}

RowCursor::RowCursor(const Loop& loop, int64_t row) : loop_(loop), position_(loop.sizes.size() - 1, 0) {
    for (size_t axis = position_.size(); axis-- > 0;) {
        position_[axis] = row % loop.sizes[axis];
        row /= loop.sizes[axis];
        for (size_t i = 0; i < loop.strides.size(); ++i)
            offsets_[i] += position_[axis] * loop.strides[i][axis];
    }
}

void RowCursor::next() {
    for (size_t axis = position_.size(); axis-- > 0;) {
        for (size_t i = 0; i < loop_.strides.size(); ++i) offsets_[i] += loop_.strides[i][axis];
        if (++position_[axis] < loop_.sizes[axis]) return;
        for (size_t i = 0; i < loop_.strides.size(); ++i)
            offsets_[i] -= loop_.strides[i][axis] * loop_.sizes[axis];
        position_[axis] = 0;
    }
}

}  // namespace kilter::engine
