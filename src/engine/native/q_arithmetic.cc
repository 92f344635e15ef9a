// QAdd and QMul: two quantized arrays, in whatever common layout they have.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/builder.h"
#include "engine/native/bytes_inline.h"
#include "engine/native/loop.h"
#include "ops/integer_result.h"

namespace kilter::engine {
namespace {

struct Operand {
    float scale;
    int zero_point;
};

struct Work {
    Operand a, b;
    float inverse, zero_point, low, high;  // of the result
    float least, most;                     // of the activation
    bool product;
};

template <class A, class B>
KILTER_INLINE void combine(const A* a, int64_t a_step, const B* b, int64_t b_step, int64_t count,
                           const Work& work, uint8_t* y) {
    const float product_scale = work.a.scale * work.b.scale;
    for (int64_t i = 0; i < count; ++i) {
        const auto left = static_cast<float>(static_cast<int>(a[i * a_step]) - work.a.zero_point);
        const auto right = static_cast<float>(static_cast<int>(b[i * b_step]) - work.b.zero_point);
        float t = work.product ? left * right * product_scale
                               : __builtin_fmaf(right, work.b.scale, left * work.a.scale);
        t = t > work.least ? t : work.least;
        t = t < work.most ? t : work.most;
        const float scaled = t * work.inverse;
        y[i] = rounded_byte(scaled + work.zero_point, work.low, work.high);
    }
}

// Unit steps in a loop of their own: the compiler then knows where the vectors are.
template <class A, class B>
KILTER_INLINE void combine_row(const A* a, int64_t a_step, const B* b, int64_t b_step, int64_t count,
                               const Work& work, uint8_t* y) {
    if (a_step == 1 && b_step == 1) return combine(a, 1, b, 1, count, work, y);
    if (a_step == 1) return combine(a, 1, b, 0, count, work, y);
    if (b_step == 1) return combine(a, 0, b, 1, count, work, y);
    combine(a, a_step, b, b_step, count, work, y);
}

KILTER_INLINE void row_body(const char* a, bool a_signed, int64_t a_step, const char* b, bool b_signed,
                            int64_t b_step, int64_t count, const Work& shared, uint8_t* y) {
    const Work work = shared;  // the result may not alias it
    const auto* a_bytes = reinterpret_cast<const uint8_t*>(a);
    const auto* b_bytes = reinterpret_cast<const uint8_t*>(b);
    const auto* a_chars = reinterpret_cast<const int8_t*>(a);
    const auto* b_chars = reinterpret_cast<const int8_t*>(b);
    if (!a_signed && !b_signed) return combine_row(a_bytes, a_step, b_bytes, b_step, count, work, y);
    if (!a_signed) return combine_row(a_bytes, a_step, b_chars, b_step, count, work, y);
    if (!b_signed) return combine_row(a_chars, a_step, b_bytes, b_step, count, work, y);
    combine_row(a_chars, a_step, b_chars, b_step, count, work, y);
}
KILTER_SIMD(row,
            (const char* a, bool a_signed, int64_t a_step, const char* b, bool b_signed, int64_t b_step,
             int64_t count, const Work& shared, uint8_t* y),
            a, a_signed, a_step, b, b_signed, b_step, count, shared, y)

// Only what limits the result; anything else the scalar kernel does.
bool read_activation(const Node& node, Work& work) {
    work.least = -std::numeric_limits<float>::infinity();
    work.most = std::numeric_limits<float>::infinity();
    const std::vector<PostOp> ops = post_ops(node, 2);
    if (ops.empty()) return true;
    if (ops.size() > 1 || (ops[0].name != "relu" && ops[0].name != "clip")) return false;
    work.least = ops[0].name == "relu" ? 0.0F : ops[0].alpha;
    if (ops[0].name == "clip") work.most = ops[0].beta;
    return true;
}

bool is_channels_last(Builder& builder, const Value* value) {
    const Shape& shape = builder.shape(value);
    if (shape.size() < 3 || shape.size() > 5 || builder.constant(value) != nullptr) return false;
    const Array array = builder.any(value);
    return !array.dense && equivalent(array.desc, channels_last_desc(array.dtype, shape));
}

Shape channels_moved_last(const Shape& shape) {
    Shape moved(shape);
    std::rotate(moved.begin() + 1, moved.begin() + 2, moved.end());
    return moved;
}

bool build(Builder& builder, const Node& node) {
    const Value* y = node.output(0);
    const Shape& shape = builder.shape(y);
    const ResultType type = result_type(node.attributes);
    if (type.dtype == DType::f32) return false;
    const float low = type.dtype == DType::u8 ? 0.0F : -128.0F;
    Work work{{node.attributes.get_float("a_scale", 1.0F),
               static_cast<int>(node.attributes.get_int("a_zero_point"))},
              {node.attributes.get_float("b_scale", 1.0F),
               static_cast<int>(node.attributes.get_int("b_zero_point"))},
              type.inverse_scale,
              type.zero_point,
              low,
              low + 255.0F,
              0,
              0,
              node.op() == "QMul"};
    if (!read_activation(node, work)) return false;

    const bool last =
        (is_channels_last(builder, node.input(0)) || is_channels_last(builder, node.input(1))) &&
        std::ranges::all_of(node.inputs(),
                            [&](const Value* value) { return builder.shape(value).size() == shape.size(); });
    const auto form = [&](const Value* value) {
        return last ? builder.as(value, channels_last_desc(builder.dtype(value), builder.shape(value)))
                    : builder.dense(value);
    };
    const Array a = form(node.input(0));
    const Array b = form(node.input(1));
    Array result;
    if (a.shape == b.shape && builder.dies_here(a)) {
        result = a;
        result.desc = last ? channels_last_desc(type.dtype, shape) : dense_desc(type.dtype, shape);
        builder.alias(y, result);
        result.dtype = type.dtype;
    } else {
        result =
            builder.result(y, last ? channels_last_desc(type.dtype, shape) : dense_desc(type.dtype, shape));
    }
    const Loop loop = last ? broadcast_loop({channels_moved_last(a.shape), channels_moved_last(b.shape)},
                                            channels_moved_last(shape))
                           : broadcast_loop({a.shape, b.shape}, shape);
    builder.add_native("native", {a, b}, {result}, [=](Execution& execution) {
        const char* left = execution.address(a);
        const char* right = execution.address(b);
        auto* to = reinterpret_cast<uint8_t*>(execution.address(result));
        for_rows(loop, [&](const RowCursor::Offsets& offsets, int64_t at, int64_t length) {
            row(left + offsets[0], a.dtype == DType::i8, loop.strides[0].back(), right + offsets[1],
                b.dtype == DType::i8, loop.strides[1].back(), length, work, to + at);
        });
    });
    return true;
}

KILTER_KERNEL("QAdd", build, kKilterDomain);
KILTER_KERNEL("QMul", build, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
