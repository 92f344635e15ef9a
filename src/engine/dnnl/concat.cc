// Concatenation: in the blocked layout when all parts share it, else row-major.
#include <algorithm>
#include <cstring>

#include "engine/builder.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

bool build_blocked(Builder& builder, const Node& node, int axis) {
    const Value* y = node.output(0);
    if (builder.dtype(y) != DType::f32) return false;
    std::vector<dnnl::memory::desc> parts;
    for (const Value* value : node.inputs()) {
        const Array array = builder.any(value);
        if (array.dense || array.desc.get_inner_blks().empty()) return false;
        parts.push_back(array.desc);
    }
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::concat::primitive_desc pd(cpu(), any_desc(DType::f32, builder.shape(y)), axis, parts, attributes);
    if (!pd || is_reference(pd.impl_info_str())) return false;
    std::vector<Builder::Argument> arguments;
    for (size_t i = 0; i < parts.size(); ++i)
        arguments.emplace_back(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), builder.any(node.input(i)));
    arguments.emplace_back(DNNL_ARG_DST, builder.result(y, pd.dst_desc()));
    builder.add_primitive(dnnl::concat(pd), pd, std::move(arguments));
    return true;
}

bool build(Builder& builder, const Node& node) {
    const Value* y = node.output(0);
    const Shape& shape = builder.shape(y);
    if (bits(builder.dtype(y)) < 8 || shape.empty()) return false;
    const int64_t axis = normalize_axis(node.attributes.get_int("axis"), static_cast<int64_t>(shape.size()));
    if (build_blocked(builder, node, static_cast<int>(axis))) return true;
    struct Part {
        Array array;
        size_t bytes;  // of one run along the axis and all axes after it
    };
    int64_t rows = 1;
    for (int64_t i = 0; i < axis; ++i) rows *= shape[static_cast<size_t>(i)];
    std::vector<Part> parts;
    std::vector<Array> reads;
    size_t whole = 0;
    for (const Value* value : node.inputs()) {
        if (std::ranges::find(builder.shape(value), 0) != builder.shape(value).end()) continue;
        const Array array = builder.dense(value);
        const size_t bytes = byte_count(array.dtype, element_count(array.shape) / rows);
        parts.push_back({array, bytes});
        reads.push_back(array);
        whole += bytes;
    }
    const Array result = builder.dense_result(y);
    builder.add_native("native", reads, {result}, [parts, rows, whole, result](Execution& execution) {
        char* target = execution.address(result);
#pragma omp parallel for schedule(static) if (rows > 1 && whole * static_cast<size_t>(rows) > 65536)
        for (int64_t row = 0; row < rows; ++row) {
            char* out = target + static_cast<size_t>(row) * whole;
            for (const Part& part : parts) {
                std::memcpy(out, execution.address(part.array) + static_cast<size_t>(row) * part.bytes, part.bytes);
                out += part.bytes;
            }
        }
    });
    return true;
}

KILTER_KERNEL("Concat", build);

}  // namespace
}  // namespace kilter::engine
