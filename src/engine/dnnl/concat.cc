// Concatenation: in the blocked layout when all parts share it, else row-major.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/builder.h"
#include "ops/op.h"

namespace kilter::engine {
namespace {

// Physical order of the axes, outermost first.
std::vector<size_t> axis_order(const dnnl::memory::desc& desc) {
    const dnnl::memory::dims strides = desc.get_strides();
    const dnnl::memory::dims dims = desc.get_dims();
    std::vector<size_t> order(strides.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
        return strides[a] != strides[b] ? strides[a] > strides[b] : dims[a] > dims[b];
    });
    return order;
}

struct Part {
    Array array;
    size_t bytes;  // of one run along the axis and all axes inside it
};

void add_copies(Builder& builder, std::vector<Part> parts, int64_t rows, const Array& result) {
    size_t whole = 0;
    std::vector<Array> reads;
    for (const Part& part : parts) {
        whole += part.bytes;
        reads.push_back(part.array);
    }
    builder.add_native("native", reads, {result}, [parts, rows, whole, result](Execution& execution) {
        char* target = execution.address(result);
#pragma omp parallel for schedule(static) if (rows > 1 && whole * static_cast <size_t>(rows) > 65536)
        for (int64_t row = 0; row < rows; ++row) {
            char* out = target + static_cast<size_t>(row) * whole;
            for (const Part& part : parts) {
                std::memcpy(out, execution.address(part.array) + static_cast<size_t>(row) * part.bytes,
                            part.bytes);
                out += part.bytes;
            }
        }
    });
}

// All parts blocked alike.
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
    const dnnl::concat::primitive_desc pd(cpu(), any_desc(DType::f32, builder.shape(y)), axis, parts,
                                          attributes);
    if (!pd || is_reference(pd.impl_info_str())) return false;
    std::vector<Builder::Argument> arguments;
    for (size_t i = 0; i < parts.size(); ++i)
        arguments.emplace_back(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), builder.any(node.input(i)));
    arguments.emplace_back(DNNL_ARG_DST, builder.result(y, pd.dst_desc()));
    builder.add_primitive(dnnl::concat(pd), pd, std::move(arguments));
    return true;
}

// The first part channels-last: the others follow it there.
bool build_channels_last(Builder& builder, const Node& node, size_t axis) {
    const Value* y = node.output(0);
    const Shape& shape = builder.shape(y);
    const DType dtype = builder.dtype(y);
    if (dnnl_type(dtype) == dnnl::memory::data_type::undef || shape.size() < 3 || shape.size() > 5)
        return false;
    const bool wanted = std::ranges::any_of(node.inputs(), [&](const Value* value) {
        return builder.constant(value) == nullptr && !builder.any(value).dense &&
               equivalent(builder.any(value).desc, channels_last_desc(dtype, builder.shape(value)));
    });
    if (!wanted) return false;
    const Array result = builder.result(y, channels_last_desc(dtype, shape));
    const std::vector<size_t> order = axis_order(result.desc);
    const auto place = std::ranges::find(order, axis) - order.begin();
    int64_t rows = 1;
    for (long i = 0; i < place; ++i) rows *= shape[order[static_cast<size_t>(i)]];
    std::vector<Part> parts;
    for (const Value* value : node.inputs()) {
        const Array array = builder.as(value, channels_last_desc(dtype, builder.shape(value)));
        parts.push_back({array, byte_count(dtype, element_count(array.shape) / rows)});
    }
    add_copies(builder, std::move(parts), rows, result);
    return true;
}

bool build(Builder& builder, const Node& node) {
    const Value* y = node.output(0);
    const Shape& shape = builder.shape(y);
    if (bits(builder.dtype(y)) < 8 || shape.empty()) return false;
    const int64_t axis = normalize_axis(node.attributes.get_int("axis"), static_cast<int64_t>(shape.size()));
    if (build_blocked(builder, node, static_cast<int>(axis))) return true;
    if (build_channels_last(builder, node, static_cast<size_t>(axis))) return true;
    int64_t rows = 1;
    for (int64_t i = 0; i < axis; ++i) rows *= shape[static_cast<size_t>(i)];
    std::vector<Part> parts;
    for (const Value* value : node.inputs()) {
        const Array array = builder.dense(value);
        parts.push_back({array, byte_count(array.dtype, element_count(array.shape) / rows)});
    }
    add_copies(builder, std::move(parts), rows, builder.dense_result(y));
    return true;
}

KILTER_KERNEL("Concat", build);

}  // namespace
}  // namespace kilter::engine
