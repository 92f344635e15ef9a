// TopK on f32: value and position packed into one integer whose order is the order of the result, then selection.
#include <algorithm>
#include <bit>
#include <limits>

#include "engine/builder.h"
#include "engine/native/loop.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

// Rises with the value; all NaN are equal and largest, both zeros are equal.
uint32_t ordered(float value) {
    if (value != value) return std::numeric_limits<uint32_t>::max();
    const auto word = std::bit_cast<uint32_t>(value + 0.0F);
    return (word & 0x80000000U) != 0 ? ~word : word | 0x80000000U;
}

// Equal values keep their order because the position is the lower half.
uint64_t key(float value, int64_t at, bool largest) {
    const uint32_t rank = largest ? ~ordered(value) : ordered(value);
    return static_cast<uint64_t>(rank) << 32 | static_cast<uint64_t>(at);
}

bool build(Builder& builder, const Node& node) {
    const Value* value = node.input(0);
    const Shape& shape = builder.shape(value);
    if (builder.dtype(value) != DType::f32 || shape.empty()) return false;
    const auto axis = static_cast<size_t>(
        normalize_axis(node.attributes.get_int("axis", -1), static_cast<int64_t>(shape.size())));
    const int64_t extent = shape[axis];
    if (extent >= int64_t{1} << 32) return false;
    const Value* shaped = node.output(0) != nullptr ? node.output(0) : node.output(1);
    if (shaped == nullptr) return false;
    const int64_t k = builder.shape(shaped)[axis];
    const int64_t outer = element_count(std::span(shape).first(axis));
    const int64_t inner = element_count(std::span(shape).subspan(axis + 1));
    const bool largest = node.attributes.get_int("largest", 1) != 0;
    const Array x = builder.dense(value);
    std::vector<Array> writes;
    Array values;
    Array indices;
    if (node.output(0) != nullptr) writes.push_back(values = builder.dense_result(node.output(0)));
    if (node.output(1) != nullptr) writes.push_back(indices = builder.dense_result(node.output(1)));
    builder.add_native("native", {x}, writes, [=](Execution& execution) {
        const auto* from = reinterpret_cast<const float*>(execution.address(x));
        auto* best = values.valid() ? reinterpret_cast<float*>(execution.address(values)) : nullptr;
        auto* where = indices.valid() ? reinterpret_cast<int64_t*>(execution.address(indices)) : nullptr;
        const int threads = threads_for(outer * inner * extent * 4);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (int64_t line = 0; line < outer * inner; ++line) {
            const float* source = from + line / inner * extent * inner + line % inner;
            std::vector<uint64_t> keys(static_cast<size_t>(extent));
            for (int64_t i = 0; i < extent; ++i)
                keys[static_cast<size_t>(i)] = key(source[i * inner], i, largest);
            if (k < extent) std::nth_element(keys.begin(), keys.begin() + k, keys.end());
            std::sort(keys.begin(), keys.begin() + k);
            const int64_t target = line / inner * k * inner + line % inner;
            for (int64_t i = 0; i < k; ++i) {
                const auto at = static_cast<int64_t>(keys[static_cast<size_t>(i)] & 0xFFFFFFFFU);
                if (best != nullptr) best[target + i * inner] = source[at * inner];
                if (where != nullptr) where[target + i * inner] = at;
            }
        }
    });
    return true;
}

KILTER_KERNEL("TopK", build);

}  // namespace
}  // namespace kilter::engine
