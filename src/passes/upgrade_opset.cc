#include "passes/upgrade_opset.h"

#include <algorithm>
#include <limits>

#include "base/fail.h"

namespace kilter {
namespace {

constexpr int64_t kAnyOpset = std::numeric_limits<int64_t>::max();

struct Rule {
    std::string_view op;
    int64_t below;  // the rule concerns opsets before this one
    UpgradeRule apply;
};

constexpr Rule kRules[] = {
    {"Add", 7, upgrade_binary},
    {"And", 7, upgrade_binary},
    {"BatchNormalization", 14, upgrade_batch_normalization},
    {"Cast", 6, upgrade_cast},
    {"Clip", 11, upgrade_clip},
    {"Concat", 4, upgrade_concat},
    {"Constant", kAnyOpset, upgrade_constant},
    {"DFT", 20, upgrade_dft},
    {"Div", 7, upgrade_binary},
    {"Dropout", 12, upgrade_dropout},
    {"Equal", 7, upgrade_binary},
    {"GRU", 7, upgrade_recurrent},
    {"Gemm", 7, upgrade_gemm},
    {"Greater", 7, upgrade_binary},
    {"GridSample", 20, upgrade_grid_sample},
    {"GroupNormalization", 21, upgrade_group_normalization},
    {"Hardmax", 13, upgrade_softmax},
    {"LSTM", 7, upgrade_recurrent},
    {"Less", 7, upgrade_binary},
    {"LogSoftmax", 13, upgrade_softmax},
    {"Mul", 7, upgrade_binary},
    {"Or", 7, upgrade_binary},
    {"PRelu", 7, upgrade_prelu},
    {"Pad", 11, upgrade_pad},
    {"Pow", 7, upgrade_binary},
    {"RNN", 7, upgrade_recurrent},
    {"ReduceL1", 18, upgrade_reduce},
    {"ReduceL2", 18, upgrade_reduce},
    {"ReduceLogSum", 18, upgrade_reduce},
    {"ReduceLogSumExp", 18, upgrade_reduce},
    {"ReduceMax", 18, upgrade_reduce},
    {"ReduceMean", 18, upgrade_reduce},
    {"ReduceMin", 18, upgrade_reduce},
    {"ReduceProd", 18, upgrade_reduce},
    {"ReduceSum", 13, upgrade_reduce},
    {"ReduceSumSquare", 18, upgrade_reduce},
    {"Reshape", 5, upgrade_reshape},
    {"Resize", kAnyOpset, upgrade_resize},
    {"RoiAlign", 16, upgrade_roi_align},
    {"Scan", 9, upgrade_scan},
    {"Scatter", kAnyOpset, upgrade_scatter},
    {"Slice", 10, upgrade_slice},
    {"Softmax", 13, upgrade_softmax},
    {"Split", 18, upgrade_split},
    {"Squeeze", 13, upgrade_squeeze},
    {"Sub", 7, upgrade_binary},
    {"Tile", 6, refuse_old_form},
    {"TopK", 10, upgrade_top_k},
    {"Unsqueeze", 13, upgrade_squeeze},
    {"Upsample", kAnyOpset, upgrade_upsample},
    {"Xor", 7, upgrade_binary},
};

}  // namespace

bool Upgrade::run() {
    if (!node_->domain().empty()) {
        infer_(*node_);
        return true;
    }
    // A hint to reuse the memory of inputs, without meaning for the result.
    if (opset_ < 7) attributes().erase("consumed_inputs");
    const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& candidate) {
        return candidate.op == node_->op() && opset_ < candidate.below;
    });
    if (rule != std::end(kRules)) {
        const std::string place = describe(*node_);
        try {
            rule->apply(*this);
        } catch (const Error& error) {
            throw error.in(fmt::format("{}, opset {}", place, opset_));
        }
    }
    if (!finished_) infer_(*node_);
    return !finished_;
}

int Upgrade::rank(size_t input) const {
    const Value* value = node_->input(input);
    return value == nullptr || !value->type.shape ? -1 : static_cast<int>(value->type.shape->size());
}

DType Upgrade::dtype(size_t input) const {
    const Value* value = node_->input(input);
    return value == nullptr || value->type.dtype == DType::undefined ? DType::f32 : value->type.dtype;
}

const Tensor* Upgrade::constant(size_t input) const {
    const Value* value = node_->input(input);
    while (value != nullptr && value->outer() != nullptr) value = value->outer();
    return graph_.constant(value);
}

Value* Upgrade::constant(std::string_view purpose, Tensor tensor) {
    const std::string stem = node_->name.empty() ? node_->op() : node_->name;
    return graph_.add_constant(std::move(tensor), graph_.fresh_name(fmt::format("{}/{}", stem, purpose)));
}

Value* Upgrade::integers(std::string_view purpose, const std::vector<int64_t>& values) {
    return constant(purpose, Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

Value* Upgrade::add(std::string_view op, std::vector<Value*> inputs, Attributes attributes) {
    const std::string stem = node_->name.empty() ? node_->op() : node_->name;
    Value* result = graph_.add(op, std::move(inputs), std::move(attributes), fmt::format("{}/{}", stem, op));
    infer_(*result->producer());
    return result;
}

void Upgrade::finish(std::string_view op, std::vector<Value*> inputs, Attributes attributes) {
    Value* result = node_->output(0);
    graph_.set_output(*node_, 0, nullptr);
    Node* last = graph_.add_node(op, std::move(inputs), {result}, std::move(attributes), node_->name);
    last->doc = node_->doc;
    last->origins = node_->origins;
    last->foreign = node_->foreign;
    finished_ = true;
    infer_(*last);
}

void Upgrade::finish_constant(Tensor tensor) {
    Value* result = node_->output(0);
    require(result != nullptr, "makes no output");
    graph_.make_constant(result, std::move(tensor));
    finished_ = true;
}

void Upgrade::attribute_to_input(std::string_view name, size_t index) {
    if (!attributes().has(name)) return;
    graph_.set_input(*node_, index, integers(name, attributes().get_ints(name)));
    attributes().erase(name);
}

}  // namespace kilter
