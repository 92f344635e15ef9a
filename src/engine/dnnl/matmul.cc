// Matrix products: MatMul, Gemm and kilter.MatMul. Constant weights are packed once; everything after is a post-op.
#include <algorithm>

#include "engine/builder.h"
#include "engine/dnnl/post_ops.h"
#include "engine/dnnl/views.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

struct Product {
    const Value* a = nullptr;
    const Value* b = nullptr;
    const Value* bias = nullptr;
    bool trans_a = false, trans_b = false;
    float alpha = 1.0F;
};

bool scale_in_output(float alpha) { return alpha != 1.0F; }

// All leading dimensions of a row-major array in one.
Shape flattened(const Shape& shape) {
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    return {rows, shape.back()};
}

// May every post-op operand follow when the leading dimensions of the result are collapsed?
bool operands_flatten(const Builder& builder, const Node& node, const std::vector<PostOp>& ops,
                      const Shape& y) {
    return std::ranges::all_of(ops, [&](const PostOp& op) {
        if (!op.is_binary()) return true;
        const Shape& shape = builder.shape(node.input(static_cast<size_t>(op.operand)));
        const bool row = std::all_of(shape.begin(), shape.empty() ? shape.end() : shape.end() - 1,
                                     [](int64_t dim) { return dim == 1; });
        return row || shape == y;
    });
}

dnnl::matmul::primitive_desc make(const Desc& a, const Desc& b, const Desc& bias, const Desc& y,
                                  const dnnl::primitive_attr& attributes) {
    if (bias.is_zero()) return {cpu(), a, b, y, attributes, true};
    return {cpu(), a, b, bias, y, attributes, true};
}

bool usable(const dnnl::matmul::primitive_desc& pd) { return pd && !is_reference(pd.impl_info_str()); }

bool build_product(Builder& builder, const Node& node, const Product& product, std::vector<PostOp> ops) {
    const Value* y = node.output(0);
    const DType dtype = builder.dtype(y);
    if (dtype != DType::f32 && (dtype != DType::bf16 || !has_bf16())) return false;
    for (const Value* value : {product.a, product.b, y})
        if (builder.dtype(value) != dtype || builder.shape(value).size() < 2) return false;
    const Tensor* weights = builder.constant(product.b);
    const Shape& a_shape = builder.shape(product.a);
    const Shape& b_shape = builder.shape(product.b);
    if (scale_in_output(product.alpha)) ops.insert(ops.begin(), PostOp{"linear", product.alpha, 0, -1});
    // The factor comes before the bias is added, post-ops come after: with both, the bias follows as a post-op.
    if (scale_in_output(product.alpha) && product.bias != nullptr) return false;

    const bool flat =
        b_shape.size() == 2 && !product.trans_a && operands_flatten(builder, node, ops, builder.shape(y));
    const Shape result_shape = flat ? flattened(builder.shape(y)) : builder.shape(y);
    const size_t rank = result_shape.size();
    if (rank > 6) return false;

    Array a = builder.any(product.a);
    if (flat || a.desc.get_format_kind() != dnnl::memory::format_kind::blocked ||
        !a.desc.get_inner_blks().empty())
        a = builder.dense(product.a);
    if (flat)
        a.desc = dense_desc(dtype, flattened(a_shape));
    else
        a.desc = with_rank(product.trans_a ? transposed(a.desc) : a.desc, rank);

    Desc b_view = weights != nullptr ? dense_desc(dtype, b_shape) : Desc();
    Array b;
    if (weights == nullptr) {
        b = builder.any(product.b);
        if (!b.desc.get_inner_blks().empty()) b = builder.dense(product.b);
        b_view = b.desc;
    }
    b_view = with_rank(product.trans_b ? transposed(b_view) : b_view, rank);
    Desc bias_desc;
    if (product.bias != nullptr) {
        Shape dims(rank, 1);
        dims.back() = builder.shape(product.bias).empty() ? 1 : builder.shape(product.bias).back();
        if (dims.back() != result_shape.back()) return false;
        bias_desc = dense_desc(dtype, dims);
    }
    FusedPostOps fused(builder, node, std::move(ops), result_shape);
    fused.accumulate(fused.can_accumulate({product.a, product.b}));
    const Desc y_desc = dense_desc(dtype, result_shape);
    const Desc b_any(b_view.get_dims(), dnnl_type(dtype), Tag::any);

    dnnl::matmul::primitive_desc pd;
    bool packed = false;
    size_t count = fused.size() + 1;
    do {
        --count;
        const dnnl::primitive_attr attributes = fused.attributes(count);
        pd = make(a.desc, weights != nullptr ? b_any : b_view, bias_desc, y_desc, attributes);
        if (usable(pd)) break;
        // A strided view that no fast kernel takes is copied to row-major first.
        pd = make(dense_desc(dtype, a.desc.get_dims()), b_any, bias_desc, y_desc, attributes);
        packed = usable(pd);
    } while (!usable(pd) && count > 0);
    if (!pd) return false;
    if (count == 0) fused.accumulate(false);

    std::vector<Builder::Argument> arguments;
    if (packed && a.desc != pd.src_desc()) {
        const Array copy = builder.temporary(dtype, a.shape, pd.src_desc());
        builder.add_reorder(a, copy);
        a = copy;
    }
    arguments.emplace_back(DNNL_ARG_SRC, a);
    if (weights != nullptr) {
        arguments.emplace_back(DNNL_ARG_WEIGHTS, builder.packed(*weights, b_view, pd.weights_desc()));
    } else {
        b.desc = b_view;
        if (b_view != pd.weights_desc()) {
            const Array copy = builder.temporary(dtype, b.shape, pd.weights_desc());
            builder.add_reorder(b, copy);
            b = copy;
        }
        arguments.emplace_back(DNNL_ARG_WEIGHTS, b);
    }
    if (product.bias != nullptr) {
        Array bias = builder.dense(product.bias);
        bias.desc = bias_desc;
        arguments.emplace_back(DNNL_ARG_BIAS, bias);
    }
    Array result;
    if (fused.accumulates()) {
        result = builder.dense(fused.operand(0));
        builder.alias(y, result);
    } else {
        result = builder.dense_result(y);
    }
    result.desc = y_desc;
    fused.bind(pd, count, arguments);
    arguments.emplace_back(DNNL_ARG_DST, result);
    builder.add_primitive(dnnl::matmul(pd), pd, std::move(arguments));
    result.shape = result_shape;
    fused.apply_rest(count, result);
    return true;
}

bool build_matmul(Builder& builder, const Node& node) {
    return build_product(builder, node, {node.input(0), node.input(1)}, {});
}

bool build_fused(Builder& builder, const Node& node) {
    Product product{node.input(0), node.input(1), node.input(2)};
    product.trans_a = node.attributes.get_int("trans_a") != 0;
    product.trans_b = node.attributes.get_int("trans_b") != 0;
    product.alpha = node.attributes.get_float("alpha", 1.0F);
    return build_product(builder, node, product, post_ops(node));
}

KILTER_KERNEL("MatMul", build_matmul);
KILTER_KERNEL("MatMul", build_fused, kKilterDomain);

}  // namespace
}  // namespace kilter::engine
