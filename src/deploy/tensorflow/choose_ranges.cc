#include "deploy/tensorflow/choose_ranges.h"

#include <algorithm>

#include "base/fail.h"

namespace kilter::tensorflow {
namespace {

class Choosing {
  public:
    Choosing(TfGraph& graph, const Choices& choices, const Stats& stats)
        : graph_(graph), choices_(choices), stats_(stats) {}

    Ranges run(const Islands& islands) {
        for (const Fused& fused : islands.fused) read(fused.product->inputs[0], options(fused));
        // What nobody else reads on integers is chosen by the operator that adds it.
        const std::set<std::string> chosen = keys();
        for (const Fused& fused : islands.fused) {
            if (fused.sum == nullptr) continue;
            for (const TfInput& tensor : {fused.summand, TfInput::of(fused.last().name)})
                if (!chosen.contains(tensor.text())) read(tensor, options(fused));
        }
        return std::move(ranges_);
    }

  private:
    RangeOptions options(const Fused& fused) const {
        const auto found = choices_.find(fused.product->name);
        return found == choices_.end() ? RangeOptions{} : found->second.range;
    }

    std::set<std::string> keys() const {
        std::set<std::string> names;
        for (const auto& [tensor, range] : ranges_) names.insert(tensor);
        return names;
    }

    void read(const TfInput& tensor, const RangeOptions& options, int depth = 0) {
        const std::string name = tensor.text();
        if (const ValueStats* stats = stats_.find(name)) return widen(name, choose_range(*stats, options));
        // What pools, reshapes and concatenations give lies within what they are given.
        TfNode* node = graph_.producer(tensor);
        if (node == nullptr || !is_passive(*node) || depth > 64)
            throw Error(fmt::format("the calibration gave no range for tensor '{}'", name),
                        "it is quantized: run samples that compute it and keep it finite, or leave the "
                        "operator that reads it in floats");
        for (size_t i = 0; i < passive_tensors(*node); ++i) read(node->inputs[i], options, depth + 1);
    }

    void widen(const std::string& tensor, const Range& range) {
        const auto [entry, added] = ranges_.emplace(tensor, Interval{range.min, range.max});
        if (added) return;
        entry->second.min = std::min<double>(entry->second.min, range.min);
        entry->second.max = std::max<double>(entry->second.max, range.max);
    }

    TfGraph& graph_;
    const Choices& choices_;
    const Stats& stats_;
    Ranges ranges_;
};

}  // namespace

Ranges choose_ranges(TfGraph& graph, const Islands& islands, const Choices& choices, const Stats& stats) {
    return Choosing(graph, choices, stats).run(islands);
}

}  // namespace kilter::tensorflow
