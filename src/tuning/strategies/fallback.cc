#include "tuning/strategies/fallback.h"

#include <algorithm>

#include <fmt/format.h>

namespace kilter {

Candidate with_float(const Space& space, Candidate candidate, size_t index,
                     std::optional<Precision> precision) {
    const SpaceOperator& entry = space.operators[index];
    const int option = precision ? entry.first(*precision) : entry.first_float();
    if (option >= 0) candidate.options[index] = option;
    return candidate;
}

const Trial& try_model_wise(Search& search, size_t limit) {
    const Trial* best = nullptr;
    const std::vector<Candidate> candidates = search.space().model_wise(limit);
    for (int variant = 0; variant < search.space().asked_variants; ++variant)
        for (Candidate candidate : candidates) {
            candidate.variant = variant;
            const Trial& trial = search.evaluate(candidate, "all operators alike", true);
            if (best == nullptr || trial.excess <= best->excess) best = &trial;
        }
    return *best;
}

void accumulate_fallback(Search& search, const Candidate& base, const std::vector<size_t>& order,
                         std::optional<Precision> precision) {
    const auto reason = [&](size_t index) {
        return fmt::format("{} falls back as well", search.space().operators[index].name);
    };
    double excess = search.evaluate(base, "start of the fallback", true).excess;
    Candidate kept = base;
    for (const size_t index : order) {
        const Trial& trial =
            search.evaluate(with_float(search.space(), kept, index, precision), reason(index), true);
        if (trial.excess >= excess) continue;
        excess = trial.excess;
        kept = trial.candidate;
    }
    Candidate all = base;
    for (const size_t index : order) {
        all = with_float(search.space(), all, index, precision);
        search.evaluate(all, reason(index));
    }
}

std::vector<size_t> by_score(const std::vector<size_t>& operators, const std::vector<double>& scores) {
    std::vector<size_t> order(operators.rbegin(), operators.rend());
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t index) { return scores[index]; });
    return order;
}

}  // namespace kilter
