#include "deploy/tensorflow/integer_values.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"

namespace kilter::tensorflow {
namespace {

// A tensor that was always zero still needs a step.
constexpr double kSmallestRange = 1e-6;

// Zeros around the image are zeros of the stored bytes: they would mean -offset.
bool pads(const TfNode& product, const TfGraph& graph) {
    if (product.op == "MatMul" || product.attributes.get_string("padding") == "VALID") return false;
    const std::vector<int64_t> amounts = product.attributes.get_ints("explicit_paddings");
    if (product.attributes.get_string("padding") == "EXPLICIT")
        return std::ranges::any_of(amounts, [](int64_t amount) { return amount != 0; });
    const std::optional<Tensor> weights = constant_of(graph, product.inputs[1]);
    return !weights || weights->dim(0) != 1 || weights->dim(1) != 1;
}

Stored choose(const Interval& range, bool is_signed, bool offset, double limit) {
    Stored stored;
    stored.is_signed = is_signed;
    const double high = std::min(std::max(range.max, 0.0), limit);
    const double low = std::min(range.min, 0.0);
    if (is_signed) {
        stored.scale = std::max({high, -low, kSmallestRange}) / 127;
    } else {
        stored.scale = std::max(high - (offset ? low : 0.0), kSmallestRange) / 255;
        if (offset)
            stored.zero_point = std::clamp(static_cast<int>(std::nearbyint(-low / stored.scale)), 0, 255);
    }
    return stored;
}

}  // namespace

IntegerValues::IntegerValues(TfGraph& graph, Islands islands, const Ranges& ranges)
    : graph_(graph), islands_(std::move(islands)), ranges_(ranges) {
    do {
        prune_passive(graph_, islands_);
        collect();
        decide_signs();
    } while (drop_sums_of_signed() || drop_wide_concatenations());
    for (const auto& [root, is_signed] : signed_) {
        const auto source = source_.find(root);
        const TfNode* activation = source == source_.end() ? nullptr : source->second->activation;
        const bool clipped = activation != nullptr && activation->op == "Relu6";
        const Interval range = range_of(root);
        stored_[root] = choose(range, is_signed, !is_signed && range.min < 0, clipped ? 6.0 : INFINITY);
    }
}

const std::string& IntegerValues::root(const std::string& tensor) const { return roots_.at(tensor); }

std::string IntegerValues::find_root(const std::string& tensor) const {
    std::string name = tensor;
    for (;;) {
        TfNode* node = graph_.find(name);
        if (node == nullptr || !islands_.passive.contains(node) || node->op == "ConcatV2") return name;
        name = node->inputs[0].text();
    }
}

void IntegerValues::collect() {
    roots_.clear();
    signed_.clear();
    source_.clear();
    const auto need = [&](const TfInput& input) {
        const std::string name = input.text();
        if (roots_.contains(name)) return;
        roots_[name] = find_root(name);
        roots_[roots_[name]] = roots_[name];
        signed_[roots_[name]] = false;
    };
    for (const Fused& fused : islands_.fused) {
        need(fused.product->inputs[0]);
        if (fused.sum != nullptr) need(fused.summand);
    }
    for (const TfNode* node : islands_.passive)
        for (size_t i = 0; i < passive_tensors(*node); ++i) need(node->inputs[i]);
    // A fused sum only comes in 8 bits, also when nobody reads it like that.
    for (const Fused& fused : islands_.fused)
        if (fused.sum != nullptr) need(TfInput::of(fused.last().name));
    for (const Fused& fused : islands_.fused)
        if (signed_.contains(fused.last().name)) source_[fused.last().name] = &fused;
}

bool IntegerValues::tolerates_offset(const std::string& root) const {
    // Integer operators add the offset along with the bias, before an activation; QuantizeV2 can add one to any floats.
    const auto source = source_.find(root);
    if (source != source_.end() && source->second->activation != nullptr) return false;
    for (const Fused& fused : islands_.fused) {
        const std::string input = fused.product->inputs[0].text();
        if (roots_.at(input) == root && pads(*fused.product, graph_)) return false;
    }
    for (const TfNode* node : islands_.passive)
        for (size_t i = 0; (node->op == "ConcatV2" || node->op == "Pad") && i < passive_tensors(*node); ++i)
            if (roots_.at(node->inputs[i].text()) == root) return false;
    return true;
}

void IntegerValues::decide_signs() {
    for (auto& [root, is_signed] : signed_) is_signed = range_of(root).min < 0 && !tolerates_offset(root);
    // What is concatenated must agree.
    for (bool changed = true; changed;) {
        changed = false;
        for (const TfNode* node : islands_.passive) {
            if (node->op != "ConcatV2" || !roots_.contains(node->name)) continue;
            bool any = signed_.at(node->name);
            for (size_t i = 0; i < passive_tensors(*node); ++i)
                any = any || signed_.at(roots_.at(node->inputs[i].text()));
            const auto agree = [&](bool& is_signed) {
                changed = changed || is_signed != any;
                is_signed = any;
            };
            agree(signed_.at(node->name));
            for (size_t i = 0; i < passive_tensors(*node); ++i)
                agree(signed_.at(roots_.at(node->inputs[i].text())));
        }
    }
}

bool IntegerValues::drop_sums_of_signed() {
    bool dropped = false;
    for (Fused& fused : islands_.fused) {
        if (fused.sum == nullptr) continue;
        const bool summand = signed_.at(roots_.at(fused.summand.text()));
        if (!summand && !signed_.at(roots_.at(fused.last().name))) continue;
        notes_.emplace_back(fused.sum->name, "added in floats: TensorFlow adds no signed integers here");
        fused.sum = nullptr;
        fused.activation = nullptr;
        dropped = true;
    }
    return dropped;
}

bool IntegerValues::drop_wide_concatenations() {
    // Relu6 is done by storing nothing above six: its range must not be widened to that of its neighbours.
    return std::erase_if(islands_.passive, [&](const TfNode* node) {
               const Interval range = range_of(node->name);
               if (node->op != "ConcatV2" || std::max(-range.min, range.max) <= 6.0) return false;
               for (size_t i = 0; i < passive_tensors(*node); ++i) {
                   const auto source = source_.find(roots_.at(node->inputs[i].text()));
                   if (source == source_.end()) continue;
                   const TfNode* activation = source->second->activation;
                   if (activation != nullptr && activation->op == "Relu6") return true;
               }
               return false;
           }) > 0;
}

Interval IntegerValues::range_of(const std::string& tensor, int depth) const {
    TfNode* node = graph_.find(TfInput(tensor).node);
    const auto found = ranges_.find(tensor);
    if (found == ranges_.end() && node != nullptr && depth < 64) {
        // What pools, reshapes and concatenations give lies within what they are given.
        if (is_passive(*node)) {
            Interval all = range_of(node->inputs[0].text(), depth + 1);
            for (size_t i = 1; i < passive_tensors(*node); ++i) {
                const Interval next = range_of(node->inputs[i].text(), depth + 1);
                all = {std::min(all.min, next.min), std::max(all.max, next.max)};
            }
            return all;
        }
    }
    if (found == ranges_.end())
        throw Error(fmt::format("the calibration gave no range for tensor '{}'", tensor),
                    "it is quantized: run samples that compute it, or exclude the node that reads it");
    require(std::isfinite(found->second.min) && std::isfinite(found->second.max) &&
                found->second.min <= found->second.max,
            "the range of tensor '{}' is [{}, {}]", tensor, found->second.min, found->second.max);
    return found->second;
}

}  // namespace kilter::tensorflow
