#include "engine/dnnl/post_ops.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "engine/native/elementwise.h"

namespace kilter::engine {

std::optional<Eltwise> eltwise(const PostOp& op) {
    using dnnl::algorithm;
    if (op.name == "relu") return Eltwise{algorithm::eltwise_relu, 0, 0};
    if (op.name == "leaky_relu") return Eltwise{algorithm::eltwise_relu, op.alpha, 0};
    if (op.name == "clip") return Eltwise{algorithm::eltwise_clip, op.alpha, op.beta};
    if (op.name == "sigmoid") return Eltwise{algorithm::eltwise_logistic, 0, 0};
    if (op.name == "tanh") return Eltwise{algorithm::eltwise_tanh, 0, 0};
    if (op.name == "gelu_erf") return Eltwise{algorithm::eltwise_gelu_erf, 0, 0};
    if (op.name == "gelu_tanh") return Eltwise{algorithm::eltwise_gelu_tanh, 0, 0};
    if (op.name == "swish") return Eltwise{algorithm::eltwise_swish, op.alpha, 0};
    if (op.name == "hard_swish") return Eltwise{algorithm::eltwise_hardswish, 1.0F / 6, 0.5F};
    if (op.name == "hard_sigmoid") return Eltwise{algorithm::eltwise_hardsigmoid, op.alpha, op.beta};
    if (op.name == "elu") return Eltwise{algorithm::eltwise_elu, op.alpha, 0};
    if (op.name == "mish") return Eltwise{algorithm::eltwise_mish, 0, 0};
    if (op.name == "exp") return Eltwise{algorithm::eltwise_exp, 0, 0};
    if (op.name == "abs") return Eltwise{algorithm::eltwise_abs, 0, 0};
    if (op.name == "sqrt") return Eltwise{algorithm::eltwise_sqrt, 0, 0};
    if (op.name == "square") return Eltwise{algorithm::eltwise_square, 0, 0};
    if (op.name == "linear") return Eltwise{algorithm::eltwise_linear, op.alpha, op.beta};
    return std::nullopt;
}

std::optional<dnnl::algorithm> binary_algorithm(std::string_view name) {
    using dnnl::algorithm;
    if (name == "add") return algorithm::binary_add;
    if (name == "sub") return algorithm::binary_sub;
    if (name == "mul") return algorithm::binary_mul;
    if (name == "div") return algorithm::binary_div;
    if (name == "max") return algorithm::binary_max;
    if (name == "min") return algorithm::binary_min;
    return std::nullopt;
}

dnnl::memory::dims brought_to_rank(Shape operand, size_t rank) {
    while (operand.size() > rank && !operand.empty()) {
        operand[1] *= operand[0];
        operand.erase(operand.begin());
    }
    operand.insert(operand.begin(), rank - operand.size(), 1);
    return operand;
}

FusedPostOps::FusedPostOps(Builder& builder, const Node& node, std::vector<PostOp> ops, const Shape& result)
    : builder_(builder), node_(node), ops_(std::move(ops)), result_(result) {}

const Value* FusedPostOps::operand(size_t index) const {
    return node_.input(static_cast<size_t>(ops_[index].operand));
}

dnnl::primitive_attr FusedPostOps::attributes(size_t count) const {
    dnnl::post_ops list;
    for (size_t i = 0; i < count; ++i) {
        if (ops_[i].is_binary()) {
            if (i == 0 && accumulate_) {
                list.append_sum(1.0F);
                continue;
            }
            const dnnl::memory::dims dims = operand_dims(i);
            const bool full = dims == result_;
            const auto type = dnnl_type(builder_.dtype(operand(i)));
            list.append_binary(*binary_algorithm(ops_[i].name),
                               full ? dnnl::memory::desc(dims, type, dnnl::memory::format_tag::any)
                                    : dense_desc(builder_.dtype(operand(i)), dims));
        } else {
            const Eltwise op = *eltwise(ops_[i]);
            list.append_eltwise(op.algorithm, op.alpha, op.beta);
        }
    }
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(list);
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

bool FusedPostOps::can_accumulate(std::initializer_list<const Value*> sources) const {
    if (ops_.empty() || ops_[0].name != "add" || operand_dims(0) != result_) return false;
    const Value* value = operand(0);
    if (builder_.constant(value) != nullptr || builder_.dtype(value) != DType::f32) return false;
    const Array array = builder_.any(value);
    if (!builder_.dies_here(array)) return false;
    for (const Value* source : sources)
        if (builder_.shares_buffer(source, array)) return false;
    // No other operand may live in the buffer that is overwritten.
    for (size_t i = 1; i < ops_.size(); ++i)
        if (ops_[i].is_binary() && builder_.shares_buffer(operand(i), array)) return false;
    return true;
}

void FusedPostOps::bind(const dnnl::primitive_desc_base& pd, size_t count,
                        std::vector<Builder::Argument>& arguments) const {
    for (size_t i = 0; i < count; ++i) {
        if (!ops_[i].is_binary() || (i == 0 && accumulate_)) continue;
        const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1;
        const Value* value = operand(i);
        const dnnl::memory::desc wanted = pd.query_md(dnnl::query::exec_arg_md, argument);
        const dnnl::memory::dims dims = operand_dims(i);
        Array array;
        if (dims == builder_.shape(value)) {
            array = builder_.as(value, wanted);
        } else {
            array = builder_.dense(value);
            array.desc = dense_desc(array.dtype, dims);
        }
        arguments.emplace_back(argument, array);
    }
}

void FusedPostOps::apply_rest(size_t count, const Array& array) const {
    for (size_t i = count; i < ops_.size(); ++i) {
        if (!ops_[i].is_binary()) {
            add_eltwise(builder_, ops_[i], array, array);
            continue;
        }
        Array other = builder_.any(operand(i));
        Shape dims = operand_dims(i);
        if (array.dense && other.dense && array.dtype == DType::f32 && other.dtype == DType::f32) {
            add_native_binary(builder_, ops_[i].name, array,
                              {other.buffer, other.offset, other.dtype, dims, {}, true}, array);
            continue;
        }
        if (dims == builder_.shape(operand(i)) && dims == result_)
            other = builder_.as(operand(i), array.desc);
        else {
            other = builder_.dense(operand(i));
            other.desc = dense_desc(other.dtype, dims);
        }
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        const dnnl::binary::primitive_desc pd(cpu(), *binary_algorithm(ops_[i].name), array.desc, other.desc,
                                              array.desc, attributes);
        builder_.add_primitive(dnnl::binary(pd), pd,
                               {{DNNL_ARG_SRC_0, array}, {DNNL_ARG_SRC_1, other}, {DNNL_ARG_DST, array}});
    }
}

void add_eltwise(Builder& builder, const PostOp& op, const Array& x, const Array& y) {
    const Eltwise function = *eltwise(op);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::eltwise_forward::primitive_desc pd(cpu(), dnnl::prop_kind::forward_inference,
                                                   function.algorithm, x.desc, y.desc, function.alpha,
                                                   function.beta, attributes);
    builder.add_primitive(dnnl::eltwise_forward(pd), pd, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
}

}  // namespace kilter::engine
