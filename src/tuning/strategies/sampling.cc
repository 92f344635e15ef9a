#include "tuning/strategies/sampling.h"

#include <algorithm>

namespace kilter {
namespace {

// Uniform in [0, 1), from the bits: standard distributions give other numbers in other libraries.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

Candidate random_candidate(Search& search) {
    std::mt19937_64& random = search.random();
    const Space& space = search.space();
    Candidate candidate = space.first();
    candidate.variant = static_cast<int>(random() % static_cast<uint64_t>(space.asked_variants));
    const double floats = uniform(random);
    for (size_t i = 0; i < space.operators.size(); ++i) {
        const SpaceOperator& entry = space.operators[i];
        const auto integers = static_cast<uint64_t>(
            std::ranges::count(entry.options, Precision::int8, &OperatorPlan::precision));
        const uint64_t rest = entry.options.size() - integers;
        const bool falls = uniform(random) < floats;
        if (integers > 0 && (rest == 0 || !falls))
            candidate.options[i] = static_cast<int>(random() % integers);
        else
            candidate.options[i] = static_cast<int>(integers + random() % rest);
    }
    return candidate;
}

double utility(const Trial& trial, double accuracy_weight, double cost_weight) {
    // A miss costs more than the whole of what INT8 gains, and the more the further it is.
    constexpr double kMiss = 0.5, kSlope = 10;
    const double penalty = trial.met ? 0 : kMiss + kSlope * std::clamp(trial.excess, 0.0, 1.0);
    return -cost_weight * trial.objective - accuracy_weight * penalty;
}

double size_of(const Space& space) {
    double size = space.asked_variants;
    for (const SpaceOperator& entry : space.operators) size *= static_cast<double>(entry.options.size());
    return size;
}

}  // namespace kilter
