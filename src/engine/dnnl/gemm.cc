// Products that are no kilter.MatMul: Gemm with its factors and any C, and MatMul of vectors.
#include <algorithm>

#include "engine/builder.h"
#include "engine/native/elementwise.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;

dnnl::matmul::primitive_desc make(const Desc& a, const Desc& b, const Desc& y,
                                  const dnnl::primitive_attr& attributes) {
    return {cpu(), a, b, y, attributes, true};
}

// y = a·b with post-ops in `list`, whose operands are in `arguments`. The descriptors have one rank.
bool add_product(Builder& builder, Array a, Array b, const Tensor* weights, const Desc& y_desc,
                 const Value* y, const dnnl::post_ops& list, std::vector<Builder::Argument> arguments) {
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(list);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const Desc any_b(b.desc.get_dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    dnnl::matmul::primitive_desc pd = make(a.desc, weights != nullptr ? any_b : b.desc, y_desc, attributes);
    if (!pd || is_reference(pd.impl_info_str())) {
        const auto copied = make(dense_desc(DType::f32, a.desc.get_dims()), any_b, y_desc, attributes);
        if (copied) pd = copied;
    }
    if (!pd) return false;
    const auto fitted = [&](const Array& array, const Desc& wanted) {
        if (array.desc == wanted) return array;
        const Array copy = builder.temporary(DType::f32, array.shape, wanted);
        builder.add_reorder(array, copy);
        return copy;
    };
    arguments.emplace_back(DNNL_ARG_SRC, fitted(a, pd.src_desc()));
    arguments.emplace_back(DNNL_ARG_WEIGHTS, weights != nullptr
                                                 ? builder.packed(*weights, b.desc, pd.weights_desc())
                                                 : fitted(b, pd.weights_desc()));
    Array result = builder.dense_result(y);
    result.desc = y_desc;
    arguments.emplace_back(DNNL_ARG_DST, result);
    builder.add_primitive(dnnl::matmul(pd), pd, std::move(arguments));
    return true;
}

bool all_floats(const Builder& builder, const Node& node) {
    return std::ranges::all_of(node.inputs(), [&](const Value* value) {
        return value == nullptr || builder.dtype(value) == DType::f32;
    });
}

Array matrix(Builder& builder, const Value* value, bool transposed) {
    Array array = builder.dense(value);
    if (transposed) array.desc = array.desc.permute_axes({1, 0});
    return array;
}

bool build_gemm(Builder& builder, const Node& node) {
    if (!all_floats(builder, node)) return false;
    const float alpha = node.attributes.get_float("alpha", 1.0F);
    const float beta = node.attributes.get_float("beta", 1.0F);
    const Array a = matrix(builder, node.input(0), node.attributes.get_int("transA") != 0);
    const Array b = matrix(builder, node.input(1), node.attributes.get_int("transB") != 0);
    const Shape& shape = builder.shape(node.output(0));
    dnnl::post_ops list;
    if (alpha != 1.0F) list.append_eltwise(dnnl::algorithm::eltwise_linear, alpha, 0.0F);
    std::vector<Builder::Argument> arguments;
    Array c;
    bool fused = false;
    if (node.input(2) != nullptr && beta != 0.0F) {
        c = builder.dense(node.input(2));
        if (beta != 1.0F) {
            const Array scaled = builder.temporary(DType::f32, c.shape, dense_desc(DType::f32, c.shape));
            add_native_binary(builder, "mul", c, builder.constant_array(Tensor::scalar(beta)), scaled);
            c = scaled;
        }
        Shape dims = c.shape;
        dims.insert(dims.begin(), 2 - dims.size(), 1);
        // One number per row is nothing that the fast kernels add on the way.
        fused = dims[0] == 1 || dims == shape;
        if (fused) {
            c.desc = dense_desc(DType::f32, dims);
            arguments.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(list.len()) | DNNL_ARG_SRC_1, c);
            list.append_binary(dnnl::algorithm::binary_add, c.desc);
        }
    }
    if (!add_product(builder, a, b, builder.constant(node.input(1)), dense_desc(DType::f32, shape),
                     node.output(0), list, std::move(arguments)))
        return false;
    if (c.valid() && !fused) {
        const Array y = builder.dense(node.output(0));
        add_native_binary(builder, "add", y, c, y);
    }
    return true;
}

bool build_vectors(Builder& builder, const Node& node) {
    const Shape& left = builder.shape(node.input(0));
    const Shape& right = builder.shape(node.input(1));
    if (!all_floats(builder, node) || (left.size() != 1 && right.size() != 1)) return false;
    Array a = builder.dense(node.input(0));
    Array b = builder.dense(node.input(1));
    Shape a_dims;
    Shape b_dims = right;
    if (right.size() == 1) {
        // All rows of the matrices on the left are rows of one matrix.
        a_dims = {element_count(left) / left.back(), left.back()};
        b_dims = {right[0], 1};
    } else {
        a_dims.assign(right.size(), 1);
        a_dims.back() = left[0];
    }
    Shape y_dims = b_dims;
    y_dims[y_dims.size() - 2] = a_dims[a_dims.size() - 2];
    if (y_dims.size() > 6) return false;
    a.desc = dense_desc(DType::f32, a_dims);
    b.desc = dense_desc(DType::f32, b_dims);
    return add_product(builder, a, b, builder.constant(node.input(1)), dense_desc(DType::f32, y_dims),
                       node.output(0), {}, {});
}

KILTER_KERNEL("Gemm", build_gemm);
KILTER_KERNEL("MatMul", build_vectors);

}  // namespace
}  // namespace kilter::engine
