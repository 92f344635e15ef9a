#include "formats/tensorflow/lower/lowering.h"

#include <algorithm>
#include <array>

#include "formats/tensorflow/lower.h"

namespace kilter::tensorflow {

LowerFunction find_rule(std::string_view op) {
    static const RuleTable<LowerRule> rules{
        convolution_rules(), detection_rules(),     elementwise_rules(), flow_rules(),    indexing_rules(),
        loop_rules(),        normalization_rules(), pooling_rules(),     product_rules(), reduction_rules(),
        resize_rules(),      shape_rules(),         space_rules()};
    return rules.find(op);
}

Value* Lowering::find(const TfInput& input) const {
    const auto found = values_.find({input.node, input.port});
    return found == values_.end() ? nullptr : found->second;
}

void Lowering::define(const TfInput& output, Value* value) { values_[{output.node, output.port}] = value; }

void Lowering::lower(const TfNode& node, int ports) {
    node_ = &node;
    inputs_.clear();
    outputs_.clear();
    begin(node.name);
    main_ = nullptr;
    main_name_ = node.name;
    ports_ = ports;
    bool complete = true;
    for (const TfInput& input : node.inputs) {
        if (input.control) continue;
        inputs_.push_back(find(input));
        complete = complete && inputs_.back() != nullptr;
    }
    const LowerFunction rule = find_rule(node.op);
    if (rule == nullptr || !complete) {
        make_opaque(rule == nullptr ? "kilter has no such operator" : "an input comes from a loop");
    } else {
        try {
            rule(*this);
            for (int port = 0; port < ports; ++port)
                if (static_cast<size_t>(port) >= outputs_.size() ||
                    outputs_[static_cast<size_t>(port)] == nullptr)
                    not_lowered("output {} is read, which kilter does not compute", port);
        } catch (const Error& error) {
            outputs_.clear();
            made_.clear();
            main_ = nullptr;
            main_name_ = node.name;
            make_opaque(error.what());
        }
    }
    for (size_t port = 0; port < outputs_.size(); ++port) {
        if (outputs_[port] == nullptr) continue;
        const TfInput output = TfInput::of(node.name, static_cast<int>(port));
        if (find(output) != nullptr) continue;
        Node* producer = outputs_[port]->producer();
        const bool own = producer != nullptr && std::ranges::find(made_, producer) != made_.end();
        if (port == 0 && own && main_ == nullptr) main_ = producer;
        const bool nameable =
            (own || outputs_[port]->is_constant()) && graph().find(output.text()) == nullptr;
        if (nameable && named_.insert(outputs_[port]).second) graph().rename(outputs_[port], output.text());
        define(output, outputs_[port]);
    }
    if (main_ != nullptr) main_->name = main_name_;
}

void Lowering::make_opaque(const std::string& reason) {
    std::vector<Value*> results;
    for (int port = 0; port < std::max(ports_, 1); ++port) results.push_back(graph().add_value());
    Node* made = graph().add_node(node_->op, inputs_, results, {}, node_->name, kOpaqueDomain);
    made->doc = reason;
    made_ = {made};
    main_ = made;
    outputs_ = results;
    // Where the element type is told, what follows is easier with it.
    const auto* type = attributes().has("dtype") ? std::get_if<TfType>(attributes().find("dtype")) : nullptr;
    if (type != nullptr && results.size() == 1) results[0]->type.dtype = type->dtype();
}

Value* Lowering::input(size_t index) const {
    if (index >= inputs_.size()) not_lowered("input {} is missing", index);
    return inputs_[index];
}

DType Lowering::dtype(std::string_view attribute) const {
    const TfType type = attributes().get_type(attribute);
    if (type.dtype() == DType::undefined) not_lowered("elements of {}", to_string(type));
    return type.dtype();
}

Value* Lowering::as_index(Value* value, std::string_view attribute) {
    return cast(value, attributes().get_type(attribute, kInt32).dtype());
}

void Lowering::name_main(Value* value, std::string_view name) {
    Node* producer = value->producer();
    if (producer == nullptr || std::ranges::find(made_, producer) == made_.end()) return;
    main_ = producer;
    if (!name.empty()) main_name_ = name;
}

void Lowering::result(Value* value, int port) {
    if (outputs_.size() <= static_cast<size_t>(port)) outputs_.resize(static_cast<size_t>(port) + 1, nullptr);
    outputs_[static_cast<size_t>(port)] = value;
}

bool is_channels_last(const Lowering& lowering) {
    const std::string format = lowering.attributes().get_string("data_format", "NHWC");
    if (format == "NHWC" || format == "NDHWC" || format == "NWC") return true;
    if (format == "NCHW" || format == "NCDHW" || format == "NCW") return false;
    not_lowered("data_format {}", format);
}

}  // namespace kilter::tensorflow
