// mse_v2: returns to floating point the operator that brings the model's outputs closest to FP32, scores anew, and so on until the
// promise is kept; then quantizes again those that matter least while it still is.
#include <algorithm>

#include <fmt/format.h>

#include "tuning/strategies/fallback.h"
#include "tuning/strategies/list.h"

namespace kilter {
namespace {

constexpr size_t kModelWise = 2;

class MseV2 : public Strategy {
  public:
    bool ends_by_itself() const override { return true; }

    void run(Search& search) override {
        const Space& space = search.space();
        const Trial& start = try_model_wise(search, kModelWise);
        if (start.met) return;
        Candidate current = start.candidate;
        std::vector<std::pair<size_t, double>> fallen;  // operator, and what it was worth
        bool met = false;
        while (!met) {
            const std::vector<size_t> left = space.quantized(current);
            if (left.empty()) return;
            const std::vector<double> scores = search.scores(Scoring::restored, current);
            const size_t worst = by_score(left, scores).front();
            current = with_float(space, current, worst);
            fallen.emplace_back(worst, scores[worst]);
            met = search.evaluate(current, fmt::format("{} hurts most", space.operators[worst].name)).met;
        }
        // The last one made the difference; among the others the least sensitive may not be needed any more.
        fallen.pop_back();
        std::ranges::stable_sort(fallen, {}, &std::pair<size_t, double>::second);
        for (const auto& [index, score] : fallen) {
            Candidate candidate = current;
            candidate.options[index] = start.candidate.options[index];
            if (!search.evaluate(candidate, fmt::format("{} on integers again", space.operators[index].name))
                     .met)
                return;
            current = candidate;
        }
    }
};

}  // namespace

std::unique_ptr<Strategy> make_mse_v2(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<MseV2>();
}

}  // namespace kilter
