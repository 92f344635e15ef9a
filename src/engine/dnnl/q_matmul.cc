// QMatMul: oneDNN's u8 (or s8) times s8 products, weights packed once, bias, activation and residual in the same kernel.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "engine/builder.h"
#include "engine/dnnl/integer_tail.h"
#include "engine/dnnl/views.h"
#include "engine/native/q_product.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;

Shape flattened(const Shape& shape) { return {element_count(shape) / shape.back(), shape.back()}; }

// May every operand follow when the leading dimensions of the result are collapsed?
bool operands_flatten(const Builder& builder, const Node& node, const Shape& y) {
    for (size_t i = 3; i < node.inputs().size(); ++i) {
        const Shape& shape = builder.shape(node.input(i));
        const bool row = std::all_of(shape.begin(), shape.empty() ? shape.end() : shape.end() - 1,
                                     [](int64_t dim) { return dim == 1; });
        if (!row && shape != y) return false;
    }
    return true;
}

// One number for all columns is written out: oneDNN takes one per column.
std::optional<Array> bias_array(Builder& builder, const Value* bias, int64_t columns) {
    if (element_count(builder.shape(bias)) == columns) return builder.dense(bias);
    const Tensor* tensor = builder.constant(bias);
    if (tensor == nullptr || tensor->size() != 1) return std::nullopt;
    return builder.constant_array(Tensor::filled(DType::f32, {columns}, tensor->as<float>()[0]));
}

Array fitted(Builder& builder, const Array& array, const Desc& wanted) {
    if (array.desc == wanted) return array;
    const Array copy = builder.temporary(array.dtype, array.shape, wanted);
    builder.add_reorder(array, copy);
    return copy;
}

bool usable(const dnnl::matmul::primitive_desc& pd) { return pd && !is_reference(pd.impl_info_str()); }

bool build(Builder& builder, const Node& node) {
    if (build_q_product(builder, node)) return true;
    const Value* y = node.output(0);
    const Value* bias = node.input(2);
    const bool trans_a = node.attributes.get_int("trans_a") != 0;
    const bool trans_b = node.attributes.get_int("trans_b") != 0;
    const Tensor* weights = builder.constant(node.input(1));
    const Shape& b_shape = builder.shape(node.input(1));
    if (builder.dtype(node.input(1)) != DType::i8) return false;

    const bool flat = b_shape.size() == 2 && !trans_a && operands_flatten(builder, node, builder.shape(y));
    const Shape result_shape = flat ? flattened(builder.shape(y)) : builder.shape(y);
    const size_t rank = result_shape.size();
    if (rank > 6) return false;
    Array a = flat ? builder.dense(node.input(0)) : plain(builder, node.input(0));
    a.desc = flat ? dense_desc(a.dtype, flattened(a.shape))
                  : with_rank(trans_a ? transposed(a.desc) : a.desc, rank);
    Array b;
    Desc b_view = dense_desc(DType::i8, b_shape);
    if (weights == nullptr) {
        b = plain(builder, node.input(1));
        b_view = b.desc;
    }
    b_view = with_rank(trans_b ? transposed(b_view) : b_view, rank);
    b.desc = b_view;
    Desc bias_desc;
    Array bias_now;
    if (bias != nullptr) {
        const auto found = bias_array(builder, bias, result_shape.back());
        if (!found) return false;
        Shape dims(rank, 1);
        dims.back() = result_shape.back();
        bias_now = *found;
        bias_now.desc = bias_desc = dense_desc(DType::f32, dims);
    }
    const IntegerTail tail(builder, node,
                           scale_products(node.attributes.get_float("a_scale", 1.0F),
                                          node.attributes.get_floats("b_scale", {1.0F})),
                           node.attributes.get_int("a_zero_point"), result_shape,
                           node.attributes.get_int("b_zero_point"));
    const Desc b_any = any_desc(DType::i8, b_view.get_dims());
    const auto make = [&](const Desc& a_desc, const Desc& b_desc,
                          bool fused) -> dnnl::matmul::primitive_desc {
        const Desc y_desc = dense_desc(tail.dtype(fused), result_shape);
        const dnnl::primitive_attr attributes = tail.attributes(fused, 1 << (rank - 1));
        if (bias_desc.is_zero()) return {cpu(), a_desc, b_desc, y_desc, attributes, true};
        return {cpu(), a_desc, b_desc, bias_desc, y_desc, attributes, true};
    };
    const Desc a_dense = dense_desc(a.dtype, a.desc.get_dims());
    dnnl::matmul::primitive_desc pd;
    bool fused = true;
    for (const bool whole : {true, false}) {
        fused = whole;
        pd = make(a.desc, weights != nullptr ? b_any : b_view, fused);
        // A strided view that no fast kernel takes is copied first.
        if (!usable(pd)) pd = make(a_dense, b_any, fused);
        if (usable(pd)) break;
    }
    if (!pd) return false;

    std::vector<Builder::Argument> arguments{{DNNL_ARG_SRC, fitted(builder, a, pd.src_desc())}};
    const std::string variant =
        fmt::format("{}{}", a.dtype == DType::i8 ? "s8" : "u8",
                    node.attributes.get_int("a_zero_point") != 0 ? "+zero_point" : "");
    arguments.emplace_back(DNNL_ARG_WEIGHTS,
                           weights != nullptr ? builder.packed(*weights, b_view, pd.weights_desc(), variant)
                                              : fitted(builder, b, pd.weights_desc()));
    if (bias != nullptr) arguments.emplace_back(DNNL_ARG_BIAS, bias_now);
    tail.bind(pd, fused, arguments);
    const Array result = tail.destination(pd.dst_desc(), fused, {node.input(0), node.input(1)});
    arguments.emplace_back(DNNL_ARG_DST, result);
    builder.add_primitive(dnnl::matmul(pd), pd, std::move(arguments));
    if (!fused) tail.finish(result);
    return true;
}

KILTER_KERNEL("QMatMul", build, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
