#include "quantization/groups.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fail.h"
#include "passes/rewrite.h"
#include "quantization/eligibility.h"

namespace kilter {
namespace {

class UnionFind {
  public:
    explicit UnionFind(size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0); }
    size_t find(size_t i) {
        while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
        return i;
    }
    void join(size_t a, size_t b) { parent_[find(a)] = find(b); }

  private:
    std::vector<size_t> parent_;
};

Range range_of(const Tensor& constant) {
    const std::vector<double> values = constant.to_doubles();
    Range range;
    for (const double value : values) {
        range.min = std::min(range.min, static_cast<float>(value));
        range.max = std::max(range.max, static_cast<float>(value));
    }
    return range;
}

}  // namespace

Reading how_read(const Graph& graph, const Node& node, size_t index) {
    const Value* input = node.input(index);
    if (input == nullptr || input->type.dtype != DType::f32) return Reading::f32;
    const std::string_view type = public_type(node);
    const Capability* can = find_capability(type);
    if (can == nullptr || can->role == Role::attached) return Reading::f32;
    if (can->role == Role::transparent) return index == 0 || type == "Concat" ? Reading::moved : Reading::f32;
    if (type == "Attention") return index == 0 ? Reading::u8 : index < 3 ? Reading::s8 : Reading::f32;
    if (can->role == Role::eligible) return Reading::u8;
    if (index == 0) return Reading::u8;
    const bool constant = graph.constant(input) != nullptr;
    if (index == 1) return constant ? Reading::weights : Reading::s8;
    if (index == 2) return constant ? Reading::bias : Reading::f32;
    return constant ? Reading::f32 : Reading::operand;
}

Groups::Groups(const Graph& graph, Planned& planned, const Stats& stats, bool lone_moves,
               std::unordered_map<const Node*, std::string>& reasons, QuantizationCache* cache)
    : graph_(graph),
      planned_(planned),
      stats_(stats),
      lone_moves_(lone_moves),
      reasons_(reasons),
      cache_(cache) {
    while (!build()) {
    }
}

bool Groups::is_transparent(const Node* node) const {
    return node != nullptr && planned_.contains(node) &&
           find_capability(public_type(*node))->role == Role::transparent;
}

bool Groups::made_on_integers(const Value* value) const {
    return value->producer() != nullptr && planned_.contains(value->producer());
}

void Groups::join() {
    groups_.clear();
    index_.clear();
    UnionFind sets(static_cast<size_t>(graph_.value_limit()));
    for (const auto& node : graph_.nodes()) {
        if (!is_transparent(node.get())) continue;
        for (size_t i = 0; i < node->inputs().size(); ++i)
            if (how_read(graph_, *node, i) == Reading::moved)
                for (const Value* output : node->outputs())
                    if (output != nullptr)
                        sets.join(static_cast<size_t>(node->input(i)->id()),
                                  static_cast<size_t>(output->id()));
    }
    std::unordered_map<size_t, size_t> position;
    for (Value* value : graph_.values()) {
        const auto [entry, added] =
            position.try_emplace(sets.find(static_cast<size_t>(value->id())), groups_.size());
        if (added) groups_.emplace_back();
        Group& group = groups_[entry->second];
        group.members.push_back(value);
        if (!is_transparent(value->producer())) group.roots.push_back(value);
        index_[value] = entry->second;
    }
}

bool Groups::reads_integers(const Node& node, size_t index) const {
    if (!planned_.contains(&node)) return false;
    switch (how_read(graph_, node, index)) {
        case Reading::u8:
        case Reading::s8:
        case Reading::moved:
            return true;
        case Reading::operand:
            // A residual that comes from integers is worth reading as such: a quarter of the bytes.
            return same_shape(node.input(index), node.output()) &&
                   std::ranges::all_of(of(node.input(index)).roots,
                                       [&](const Value* root) { return made_on_integers(root); });
        default:
            return false;
    }
}

Range Groups::range_of_value(const Value* value, const ValueStats& seen, const RangeOptions& options) const {
    const auto choose = [&] { return choose_range(seen, options); };
    if (cache_ == nullptr) return choose();
    return cache_->range(fmt::format("{}|{}|{}|{}|{}", value->name(), name(options.algorithm),
                                     options.percentile, options.symmetric, options.levels),
                         choose);
}

bool Groups::build() {
    join();
    // Who reads integers decides what is quantized, and the first product that does so decides how.
    struct Reader {
        const Node* node;
        Reading reading;
    };
    std::vector<std::vector<Reader>> readers(groups_.size());
    for (const auto& node : graph_.nodes())
        for (size_t i = 0; i < node->inputs().size(); ++i)
            if (node->input(i) != nullptr && reads_integers(*node, i))
                readers[index_.at(node->input(i))].push_back({node.get(), how_read(graph_, *node, i)});
    for (size_t g = 0; g < groups_.size(); ++g) {
        Group& group = groups_[g];
        if (readers[g].empty()) continue;
        const auto rank = [](const Reader& reader) {
            if (reader.reading == Reading::moved) return 2;
            return reader.reading == Reading::operand ? 1 : 0;
        };
        const auto first = std::ranges::min_element(readers[g], {}, rank);
        if (first->reading == Reading::moved && !lone_moves_) continue;
        const OperatorPlan& plan = *planned_.at(first->node);
        const bool s8 =
            std::ranges::all_of(readers[g],
                                [](const Reader& reader) {
                                    return reader.reading == Reading::s8 || reader.reading == Reading::moved;
                                }) &&
            first->reading == Reading::s8;
        group.quantized = true;
        group.decided_by = plan.name;
        const Scheme scheme = s8 ? Scheme::sym : plan.activation.scheme;
        const RangeOptions options{plan.activation.algorithm, plan.activation.percentile,
                                   scheme == Scheme::sym, 256};
        for (const Value* root : group.roots) {
            Range range;
            if (const Tensor* constant = graph_.constant(root)) {
                range = range_of(*constant);
            } else {
                const ValueStats* seen = stats_.find(root->name());
                if (seen == nullptr || seen->count == 0) {
                    for (const Reader& reader : readers[g]) {
                        planned_.erase(reader.node);
                        reasons_[reader.node] =
                            fmt::format("calibration saw no finite value of '{}'", root->name());
                    }
                    return false;
                }
                range = range_of_value(root, *seen, options);
            }
            group.range.min = std::min(group.range.min, range.min);
            group.range.max = std::max(group.range.max, range.max);
        }
        group.params = activation_params(group.range, s8 ? DType::i8 : DType::u8, scheme);
    }
    return true;
}

}  // namespace kilter
