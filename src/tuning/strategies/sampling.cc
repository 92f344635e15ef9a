#include "tuning/strategies/sampling.h"

#include <algorithm>
#include <cmath>

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

bool is_known(const Search& search, const Candidate& candidate) {
    return std::ranges::find(search.trials(), candidate, &Trial::candidate) != search.trials().end();
}

bool advance(const Space& space, Candidate& candidate) {
    for (size_t i = candidate.options.size(); i-- > 0;) {
        if (++candidate.options[i] < static_cast<int>(space.operators[i].options.size())) return true;
        candidate.options[i] = 0;
    }
    return ++candidate.variant < space.asked_variants;
}

std::optional<Candidate> new_candidate(Search& search) {
    constexpr int kDraws = 100;
    for (int drawn = 0; drawn < kDraws; ++drawn) {
        Candidate candidate = random_candidate(search);
        if (!is_known(search, candidate)) return candidate;
    }
    // A small space, or what is left of it hardly ever comes up: the first that is missing is found after as many as were tried.
    Candidate candidate = search.space().first();
    do {
        if (!is_known(search, candidate)) return candidate;
    } while (advance(search.space(), candidate));
    return {};
}

double utility(const Trial& trial, double accuracy_weight, double cost_weight) {
    // A miss costs more than the whole of what INT8 gains, and the more the further it is.
    constexpr double kMiss = 0.5, kSlope = 10;
    const double penalty = trial.met ? 0 : kMiss + kSlope * std::clamp(trial.excess, 0.0, 1.0);
    // Of an accuracy that is no number the objective may be infinite; those who learn from it cannot use that.
    const double cost = std::isfinite(trial.objective) ? trial.objective : kSlope;
    return -cost_weight * cost - accuracy_weight * penalty;
}

}  // namespace kilter
