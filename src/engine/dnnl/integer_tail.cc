#include "engine/dnnl/integer_tail.h"

#include <algorithm>
#include <cstring>

#include "engine/dnnl/post_ops.h"
#include "engine/native/bytes.h"

namespace kilter::engine {

IntegerTail::IntegerTail(Builder& builder, const Node& node, std::vector<float> scales,
                         int64_t source_zero_point, const Shape& result, int64_t weights_zero_point)
    : builder_(builder),
      node_(node),
      tail_(float_tail(node)),
      type_(result_type(node.attributes)),
      y_scale_(node.attributes.get_float("y_scale", 1.0F)),
      source_zero_point_(source_zero_point),
      weights_zero_point_(weights_zero_point),
      result_(result) {
    tail_.scales = std::move(scales);
    size_t binary = 0;
    for (size_t i = 0; i < tail_.ops.size(); ++i) {
        if (!tail_.ops[i].is_binary()) continue;
        const float scale = tail_.operand_scales[binary];
        // A float residual can be summed in place as well, where the result is f32.
        const bool floats = i == 0 && tail_.ops[i].name == "add" && type_.dtype == DType::f32 && scale == 0 &&
                            operand_dims(i) == result_ && builder.constant(operand(i)) == nullptr &&
                            builder.dies_here(builder.any(operand(i)));
        if (scale != 0 || (floats && residual_ < 0)) {
            residual_ = static_cast<int>(i);
            residual_scale_ = scale == 0 ? 1.0F : scale;
            residual_zero_point_ = tail_.operand_zero_points[binary];
        }
        ++binary;
    }
}

const Value* IntegerTail::operand(size_t index) const {
    return node_.input(static_cast<size_t>(tail_.ops[index].operand));
}

dnnl::memory::dims IntegerTail::operand_dims(size_t index) const {
    return brought_to_rank(builder_.shape(operand(index)), result_.size());
}

dnnl::primitive_attr IntegerTail::attributes(bool fused, int channel_mask) const {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, tail_.scales.size() == 1 ? 0 : channel_mask);
    if (source_zero_point_ != 0) attributes.set_zero_points_mask(DNNL_ARG_SRC, 0);
    if (weights_zero_point_ != 0) attributes.set_zero_points_mask(DNNL_ARG_WEIGHTS, 0);
    if (!fused) return attributes;
    if (type_.dtype != DType::f32) {
        attributes.set_scales_mask(DNNL_ARG_DST, 0);
        if (type_.zero_point != 0) attributes.set_zero_points_mask(DNNL_ARG_DST, 0);
    }
    dnnl::post_ops list;
    for (size_t i = 0; i < tail_.ops.size(); ++i) {
        const PostOp& op = tail_.ops[i];
        if (!op.is_binary()) {
            const Eltwise function = *eltwise(op);
            list.append_eltwise(function.algorithm, function.alpha, function.beta);
        } else if (static_cast<int>(i) == residual_) {
            // Into f32 the residual is converted, less its zero point, before the primitive runs.
            if (type_.dtype == DType::f32)
                list.append_sum(residual_scale_);
            else
                list.append_sum(residual_scale_, static_cast<int32_t>(residual_zero_point_),
                                dnnl_type(builder_.dtype(operand(i))));
        } else {
            const dnnl::memory::dims dims = operand_dims(i);
            const DType dtype = builder_.dtype(operand(i));
            list.append_binary(*binary_algorithm(op.name),
                               dims == result_ ? any_desc(dtype, dims) : dense_desc(dtype, dims));
        }
    }
    attributes.set_post_ops(list);
    return attributes;
}

void IntegerTail::bind(const dnnl::primitive_desc_base& pd, bool fused,
                       std::vector<Builder::Argument>& arguments) const {
    const auto number = [&](int argument, const Tensor& tensor) {
        arguments.emplace_back(argument, builder_.constant_array(tensor));
    };
    const auto integer = [](int64_t value) {
        return Tensor::of<int32_t>({1}, {static_cast<int32_t>(value)});
    };
    number(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
           Tensor::of<float>({static_cast<int64_t>(tail_.scales.size())}, tail_.scales));
    if (source_zero_point_ != 0)
        number(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, integer(source_zero_point_));
    if (weights_zero_point_ != 0)
        number(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_WEIGHTS, integer(weights_zero_point_));
    if (!fused) return;
    if (type_.dtype != DType::f32) {
        number(DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, Tensor::of<float>({1}, {y_scale_}));
        if (type_.zero_point != 0)
            number(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, integer(static_cast<int64_t>(type_.zero_point)));
    }
    for (size_t i = 0; i < tail_.ops.size(); ++i) {
        if (!tail_.ops[i].is_binary() || static_cast<int>(i) == residual_) continue;
        const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1;
        const Value* value = operand(i);
        const dnnl::memory::dims dims = operand_dims(i);
        Array array;
        if (dims == builder_.shape(value)) {
            array = builder_.as(value, pd.query_md(dnnl::query::exec_arg_md, argument));
        } else {
            array = builder_.dense(value);
            array.desc = dense_desc(array.dtype, dims);
        }
        arguments.emplace_back(argument, array);
    }
}

bool IntegerTail::stays_in_place(const Array& residual, std::initializer_list<const Value*> sources) const {
    if (byte_count(residual.dtype, 1) != byte_count(type_.dtype, 1) || !builder_.dies_here(residual))
        return false;
    if (std::ranges::any_of(sources,
                            [&](const Value* value) { return builder_.shares_buffer(value, residual); }))
        return false;
    for (size_t i = 0; i < tail_.ops.size(); ++i)
        if (tail_.ops[i].is_binary() && static_cast<int>(i) != residual_ &&
            builder_.shares_buffer(operand(i), residual))
            return false;
    return true;
}

Array IntegerTail::destination(const dnnl::memory::desc& desc, bool fused,
                               std::initializer_list<const Value*> sources) const {
    const Value* y = node_.output(0);
    const bool flat = desc.get_dims() != dnnl_dims(builder_.shape(y));
    if (!fused) return builder_.temporary(DType::f32, builder_.shape(y), desc);
    const auto fresh = [&] {
        Array array = flat ? builder_.dense_result(y) : builder_.result(y, desc);
        array.desc = desc;
        return array;
    };
    if (residual_ < 0) return fresh();
    const Value* value = operand(static_cast<size_t>(residual_));
    const DType dtype = builder_.dtype(value);
    const dnnl::memory::desc seen(desc.get_dims(), dnnl_type(dtype), desc.get_strides());
    const Array residual = flat ? builder_.dense(value) : builder_.as(value, seen);
    if (stays_in_place(residual, sources)) {
        Array array = residual;
        array.desc = flat ? dense_desc(type_.dtype, builder_.shape(y)) : desc;
        builder_.alias(y, array);
        array.dtype = type_.dtype;
        array.desc = desc;
        return array;
    }
    const Array array = fresh();
    const int64_t count = element_count(residual.shape);
    const bool widen = byte_count(dtype, 1) != byte_count(type_.dtype, 1);
    const int64_t zero_point = residual_zero_point_;
    builder_.add_native(
        "native", {residual}, {array},
        [=](Execution& execution) {
            if (widen)
                dequantize(execution.address(residual), dtype, count, 1.0F, zero_point,
                           reinterpret_cast<float*>(execution.address(array)));
            else
                std::memcpy(execution.address(array), execution.address(residual),
                            static_cast<size_t>(count) * byte_count(dtype, 1));
        },
        "copy");
    return array;
}

void IntegerTail::finish(const Array& sums) const {
    const Value* y = node_.output(0);
    Array floats = sums;
    if (!is_row_major(sums.desc)) {
        floats = builder_.temporary(DType::f32, sums.shape, dense_desc(DType::f32, sums.shape));
        builder_.add_reorder(sums, floats);
    }
    std::vector<Array> inputs(node_.inputs().size());
    std::vector<Array> reads{floats};
    for (const PostOp& op : tail_.ops)
        if (op.is_binary())
            reads.push_back(inputs[static_cast<size_t>(op.operand)] =
                                builder_.dense(node_.input(static_cast<size_t>(op.operand))));
    const Array result = builder_.dense_result(y);
    const Shape shape = builder_.shape(y);
    builder_.add_native("native", reads, {result, floats},
                        [=, tail = tail_, type = type_](Execution& execution) {
                            const std::span<float> values(reinterpret_cast<float*>(execution.address(floats)),
                                                          static_cast<size_t>(element_count(shape)));
                            std::vector<Tensor> operands;
                            for (const Array& array : inputs)
                                operands.push_back(array.valid() ? execution.tensor(array) : Tensor());
                            apply_post_ops(tail, values, shape, operands);
                            if (type.dtype == DType::f32)
                                std::memcpy(execution.address(result), values.data(), values.size_bytes());
                            else
                                requantize(values, type, execution.address(result));
                        });
}

}  // namespace kilter::engine
