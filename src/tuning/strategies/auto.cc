// auto, the default: everything on integers first; then other ways to choose ranges and the recipes, compared by the error of the
// outputs on the calibration samples; then operators return to floating point in the order of error saved per speed lost, as few as
// the promise needs, found by doubling and bisection; at last those that turn out not to be needed go back to integers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tuning/strategies/fallback.h"
#include "tuning/strategies/list.h"

namespace kilter {
namespace {

constexpr double kWorthwhile =
    0.9;  // an alternative must save a tenth of the error to be worth an evaluation
constexpr size_t kAlternatives = 2;  // evaluated at most
constexpr int kFailures = 3;         // vain attempts to put an operator back on integers before that ends

class Auto : public Strategy {
  public:
    bool ends_by_itself() const override { return true; }

    void run(Search& search) override {
        const Trial& start = search.evaluate(search.space().first(), "all on integers");
        const Trial& base = start.met ? start : try_alternatives(search, start);
        if (base.met) {
            drop_useless(search, base.candidate);
            return;
        }
        const std::vector<size_t> order = fallback_order(search, base.candidate);
        if (order.empty()) return;
        const size_t needed = fewest(search, base.candidate, order);
        if (needed == 0) return;
        give_back(search, base.candidate, {order.begin(), order.begin() + static_cast<long>(needed)});
    }

  private:
    struct Alternative {
        Candidate candidate;
        std::string reason;
        double error;
    };

    // Evaluates the most promising other ways to quantize everything; returns the most accurate trial so far.
    static const Trial& try_alternatives(Search& search, const Trial& start) {
        const Space& space = search.space();
        const double error = search.output_error(start.candidate);
        std::vector<Alternative> alternatives;
        const auto consider = [&](Candidate candidate, std::string reason) {
            if (candidate == start.candidate ||
                std::ranges::find(alternatives, candidate, &Alternative::candidate) != alternatives.end())
                return;
            search.check_time();
            const double now = search.output_error(candidate);
            if (now < kWorthwhile * error)
                alternatives.push_back({std::move(candidate), std::move(reason), now});
        };
        for (size_t variant = 0; variant < space.variants.size(); ++variant) {
            Candidate candidate = start.candidate;
            candidate.variant = static_cast<int>(variant);
            consider(std::move(candidate), space.variants[variant].name);
        }
        const int variant =
            alternatives.empty()
                ? start.candidate.variant
                : std::ranges::min_element(alternatives, {}, &Alternative::error)->candidate.variant;
        for (const RangeAlgorithm algorithm :
             {RangeAlgorithm::minmax, RangeAlgorithm::mse, RangeAlgorithm::percentile, RangeAlgorithm::kl}) {
            Candidate candidate = with_algorithm(space, start.candidate, algorithm);
            candidate.variant = variant;
            consider(std::move(candidate), fmt::format("ranges by {}", name(algorithm)));
        }
        std::ranges::stable_sort(alternatives, {}, &Alternative::error);
        if (alternatives.size() > kAlternatives) alternatives.resize(kAlternatives);
        const Trial* best = &start;
        for (const Alternative& alternative : alternatives) {
            const Trial& trial = search.evaluate(alternative.candidate, alternative.reason);
            const auto rank = [](const Trial& entry) {
                return std::pair(entry.outcome.rejected_early, entry.excess);
            };
            if (rank(trial) < rank(*best)) best = &trial;
            if (trial.met) return trial;
        }
        return *best;
    }

    // Everything by one range algorithm, where operators can.
    static Candidate with_algorithm(const Space& space, Candidate candidate, RangeAlgorithm algorithm) {
        for (size_t i = 0; i < space.operators.size(); ++i) {
            const auto& options = space.operators[i].options;
            const OperatorPlan& now = options[static_cast<size_t>(candidate.options[i])];
            for (size_t j = 0; j < options.size(); ++j) {
                OperatorPlan wanted = now;
                wanted.activation.algorithm = algorithm;
                if (options[j] == wanted) candidate.options[i] = static_cast<int>(j);
            }
        }
        return candidate;
    }

    // A multiple-choice knapsack with two choices each: its supported solutions are the prefixes of this order.
    static std::vector<size_t> fallback_order(Search& search, const Candidate& base) {
        const std::vector<double> scores = search.scores(Scoring::restored, base);
        const std::vector<double> gains = search.gains();
        std::vector<size_t> operators;
        double sum = 0;
        for (const size_t index : search.space().quantized(base))
            if (search.space().operators[index].role == Role::must ||
                search.space().operators[index].role == Role::eligible)
                operators.push_back(index);
        for (const size_t index : operators) sum += std::max(gains[index], 0.0);
        // Times of short operators are mostly noise: none counts as cheaper than a quarter of the average.
        const double least =
            operators.empty() ? 1 : std::max(0.25 * sum / static_cast<double>(operators.size()), 1e-12);
        std::vector<double> ratios(scores.size(), 0);
        for (const size_t index : operators) {
            const double gain = std::max(gains[index], least);
            // What makes the outputs worse when it is restored comes last, the harmless ones first.
            ratios[index] = scores[index] > 0 ? scores[index] / gain : scores[index];
        }
        return by_score(operators, ratios);
    }

    static Candidate with_prefix(const Space& space, Candidate candidate, const std::vector<size_t>& order,
                                 size_t count) {
        for (size_t i = 0; i < count; ++i) candidate = with_float(space, std::move(candidate), order[i]);
        return candidate;
    }

    // How many operators of the order have to fall back; 0 when even all of them do not help.
    static size_t fewest(Search& search, const Candidate& base, const std::vector<size_t>& order) {
        const auto keeps = [&](size_t count) {
            return search
                .evaluate(with_prefix(search.space(), base, order, count),
                          fmt::format("{} operator{} in floating point", count, count == 1 ? "" : "s"))
                .met;
        };
        size_t misses = 0, hits = 1;
        while (!keeps(hits)) {
            misses = hits;
            if (hits == order.size()) return 0;
            hits = std::min(2 * hits, order.size());
        }
        while (hits - misses > 1) {
            const size_t middle = misses + (hits - misses) / 2;
            (keeps(middle) ? hits : misses) = middle;
        }
        return hits;
    }

    // Puts operators back on integers, those that gain most first, while the promise holds.
    static void give_back(Search& search, const Candidate& base, std::vector<size_t> fallen) {
        const std::vector<double> gains = search.gains();
        Candidate current = with_prefix(search.space(), base, fallen, fallen.size());
        fallen.pop_back();  // without the last one the promise was broken
        std::ranges::stable_sort(fallen, std::greater<>(), [&](size_t index) { return gains[index]; });
        int failures = 0;
        for (const size_t index : fallen) {
            if (gains[index] <= 0 || failures == kFailures) break;
            Candidate candidate = current;
            candidate.options[index] = base.options[index];
            const SpaceOperator& entry = search.space().operators[index];
            if (search.evaluate(candidate, fmt::format("{} on integers again", entry.name)).met)
                current = std::move(candidate);
            else
                ++failures;
        }
    }

    // All on integers is good enough; what is slower on integers need not be there.
    static void drop_useless(Search& search, const Candidate& base) {
        const std::vector<double> gains = search.gains();
        Candidate candidate = base;
        for (const size_t index : search.space().quantized(base)) {
            const Role role = search.space().operators[index].role;
            if ((role == Role::must || role == Role::eligible) && gains[index] < -kNoticeable)
                candidate = with_float(search.space(), std::move(candidate), index);
        }
        if (!(candidate == base)) search.evaluate(candidate, "what is slower on integers in floating point");
    }

    static constexpr double kNoticeable = 0.002;  // of the model's whole cost
};

}  // namespace

std::unique_ptr<Strategy> make_auto(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Auto>();
}

}  // namespace kilter
