#include "formats/mxnet/lower/lowering.h"

#include <algorithm>
#include <cmath>

#include "formats/mxnet/lower.h"

namespace kilter::mxnet {

LowerFunction find_rule(std::string_view op) {
    static const RuleTable<LowerRule> rules{
        attention_rules(), convolution_rules(), elementwise_rules(), indexing_rules(), normalization_rules(),
        pooling_rules(),   product_rules(),     reduction_rules(),   resize_rules(),   shape_rules()};
    return rules.find(op);
}

std::vector<Value*> Lowering::lower(const SymbolNode& node, std::vector<Value*> inputs, size_t outputs) {
    node_ = &node;
    inputs_ = std::move(inputs);
    outputs_.clear();
    main_ = nullptr;
    begin(node.name);
    const LowerFunction rule = find_rule(node.op);
    if (rule == nullptr) {
        make_opaque("kilter has no such operator", outputs);
    } else {
        try {
            rule(*this);
            if (outputs_.size() < outputs)
                not_lowered("output {} is read, which kilter does not compute", outputs - 1);
        } catch (const Error& error) {
            make_opaque(error.what(), outputs);
        }
    }
    if (main_ == nullptr && is_own(outputs_[0]->producer())) main_ = outputs_[0]->producer();
    if (main_ != nullptr) main_->name = node.name;
    // What users call an output: the node's name, with a number when there are several.
    for (size_t i = 0; i < outputs_.size(); ++i) {
        const std::string name =
            outputs_.size() == 1 ? node.name + "_output" : fmt::format("{}_output{}", node.name, i);
        if (is_own(outputs_[i]->producer()) && graph().find(name) == nullptr)
            graph().rename(outputs_[i], name);
    }
    return outputs_;
}

void Lowering::make_opaque(const std::string& reason, size_t outputs) {
    outputs_.clear();
    for (size_t i = 0; i < std::max<size_t>(outputs, 1); ++i) outputs_.push_back(graph().add_value());
    main_ = graph().add_node(node_->op, inputs_, outputs_, {}, node_->name, kOpaqueDomain);
    main_->doc = reason;
    made_ = {main_};
}

Value* Lowering::input(size_t index) const {
    if (index >= inputs_.size()) not_lowered("input {} is missing", index);
    return inputs_[index];
}

int64_t Lowering::axis(int64_t axis, const Value* value) const {
    if (axis >= 0) return axis;
    const int64_t found = axis + rank(value);
    if (found < 0) not_lowered("axis {} of rank {}", axis, rank(value));
    return found;
}

Value* Lowering::scalar_like(double number, const Value* value) {
    const DType dtype = value->type.dtype;
    if (dtype == DType::undefined) not_lowered("the element type of '{}' is not known", value->name());
    if (is_integer(dtype)) {
        const double limit = std::ldexp(1.0, bits(dtype) - (is_signed(dtype) ? 1 : 0));
        if (!(number < limit && number >= (is_signed(dtype) ? -limit : 0.0)) || number != std::trunc(number))
            not_lowered("{} is no {}", number, name(dtype));
    }
    return add_scalar(number, dtype);
}

void Lowering::name_main(Value* value) {
    if (is_own(value->producer())) main_ = value->producer();
}

void Lowering::result(Value* value) {
    if (value->type.shape && value->type.shape->empty()) {
        if (main_ == nullptr) name_main(value);
        value = reshape(value, {1});
    }
    outputs_.push_back(value);
}

bool is_channels_last(const Lowering& lowering) {
    const std::string layout = lowering.parameters().text("layout", "NCHW");
    if (layout == "NHWC" || layout == "NDHWC" || layout == "NWC") return true;
    if (layout == "NCHW" || layout == "NCDHW" || layout == "NCW") return false;
    not_lowered("layout {}", layout);
}

}  // namespace kilter::mxnet
