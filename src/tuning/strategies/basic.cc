// basic: all operators alike; then each operator alone in floating point, the last of the graph first; then, in the order of what
// that gained, one after another. What Intel's tools do, with every trial reporting its own accuracy.
#include <algorithm>

#include <fmt/format.h>

#include "tuning/strategies/fallback.h"
#include "tuning/strategies/list.h"

namespace kilter {
namespace {

class Basic : public Strategy {
  public:
    void run(Search& search) override {
        const Space& space = search.space();
        const Candidate base = try_model_wise(search).candidate;
        for (const Precision precision : {Precision::bf16, Precision::f32}) {
            std::vector<size_t> operators;
            std::vector<double> accuracy(space.operators.size(), 0);
            const std::vector<size_t> quantized = space.quantized(base);
            for (auto index = quantized.rbegin(); index != quantized.rend(); ++index) {
                const SpaceOperator& entry = space.operators[*index];
                const int option = entry.first(precision);
                if (option < 0) continue;
                Candidate candidate = base;
                candidate.options[*index] = option;
                const Trial& trial =
                    search.evaluate(candidate, fmt::format("{} in {}", entry.name, name(precision)), true);
                accuracy[*index] = -trial.excess;
                operators.push_back(*index);
            }
            if (operators.empty()) continue;
            std::ranges::sort(operators);
            accumulate_fallback(search, base, by_score(operators, accuracy), precision);
        }
    }
};

}  // namespace

std::unique_ptr<Strategy> make_basic(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Basic>();
}

}  // namespace kilter
