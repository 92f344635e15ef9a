// Loops over broadcast arrays: axes are joined where all operands allow it, rows are handed to threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kilter/base/tensor.h"

namespace kilter::engine {

// Below this many elements starting a second thread costs more than it saves.
inline constexpr int64_t kParallelElements = 1 << 14;

//! Threads for `elements` of work that is cheap per element.
inline int threads_for(int64_t elements) { return elements < kParallelElements ? 1 : omp_get_max_threads(); }

inline constexpr size_t kMostOperands = 4;

//! A loop nest over row-major operands that broadcast to one row-major result.
struct Loop {
    Shape sizes;                 // the last axis is the row
    std::vector<Shape> strides;  // by operand, in elements; 0 where it repeats. In a row: 0 or 1
    int64_t length() const { return sizes.back(); }
    int64_t rows() const;
};

Loop broadcast_loop(const std::vector<Shape>& operands, const Shape& result);

//! Walks the rows of a loop in order.
class RowCursor {
  public:
    using Offsets = std::array<int64_t, kMostOperands>;
    RowCursor(const Loop& loop, int64_t row);
    const Offsets& offsets() const { return offsets_; }
    void next();

  private:
    const Loop& loop_;
    Shape position_;
    Offsets offsets_{};
};

//! Calls body(offsets, at, length) for every row, or piece of one: where each operand and the result start.
template <class Body>
void for_rows(const Loop& loop, const Body& body) {
    const int64_t rows = loop.rows();
    const int64_t length = loop.length();
    const int threads = threads_for(rows * length);
    if (rows >= threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            const int64_t count = omp_get_num_threads();
            const int64_t first = rows * omp_get_thread_num() / count;
            const int64_t last = rows * (omp_get_thread_num() + 1) / count;
            if (first < last) {
                RowCursor cursor(loop, first);
                for (int64_t row = first; row < last; ++row, cursor.next())
                    body(cursor.offsets(), row * length, length);
            }
        }
        return;
    }
    // Few long rows are cut into pieces so that every thread has work.
    const int64_t piece = (length + threads - 1) / threads;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t job = 0; job < rows * threads; ++job) {
        const int64_t start = job % threads * piece;
        const int64_t count = std::min(piece, length - start);
        if (count <= 0) continue;
        const RowCursor cursor(loop, job / threads);
        RowCursor::Offsets offsets = cursor.offsets();
        for (size_t i = 0; i < loop.strides.size(); ++i) offsets[i] += start * loop.strides[i].back();
        body(offsets, job / threads * length + start, count);
    }
}

//! Calls body(start, count) for pieces of [0, size).
template <class Body>
void for_pieces(int64_t size, const Body& body) {
    const int threads = threads_for(size);
    if (threads == 1) return body(int64_t{0}, size);
    // Pieces start at multiples of 64 elements: no two threads write one cache line.
    const int64_t piece = ((size + threads - 1) / threads + 63) / 64 * 64;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t start = 0; start < size; start += piece) body(start, std::min(piece, size - start));
}

}  // namespace kilter::engine
