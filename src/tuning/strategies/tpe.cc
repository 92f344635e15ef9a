// tpe: a tree-structured Parzen estimator. The better trials and the others each give a distribution of choices for every operator;
// the next candidate is the one, of some drawn from the first, that is likeliest under it and unlikeliest under the second.
#include <algorithm>
#include <cmath>

#include "tuning/strategies/list.h"
#include "tuning/strategies/sampling.h"

namespace kilter {
namespace {

constexpr int kStartup = 10;    // random trials before there is anything to learn from
constexpr double kGamma = 0.3;  // share of the trials that count as good
constexpr int kDrawn = 24;      // candidates to choose from
constexpr double kPrior = 1.0;  // imaginary trials, spread evenly: nothing is impossible

using Counts = std::vector<std::vector<double>>;  // operator, option

class Tpe : public Strategy {
  public:
    Tpe(double accuracy_weight, double cost_weight)
        : accuracy_weight_(accuracy_weight), cost_weight_(cost_weight) {}

    void run(Search& search) override {
        search.evaluate(search.space().first(), "everything at its first choice");
        while (true) {
            const bool learned = search.trials().size() >= kStartup;
            const std::optional<Candidate> candidate = learned ? propose(search) : new_candidate(search);
            if (!candidate) return;
            search.evaluate(*candidate, learned ? "likeliest to be good" : "drawn at random");
        }
    }

  private:
    std::optional<Candidate> propose(Search& search) const {
        std::vector<const Trial*> ranked;
        for (const Trial& trial : search.trials()) ranked.push_back(&trial);
        std::ranges::stable_sort(ranked, std::greater<>(), [&](const Trial* trial) {
            return utility(*trial, accuracy_weight_, cost_weight_);
        });
        const auto good =
            std::max<size_t>(1, static_cast<size_t>(std::ceil(kGamma * static_cast<double>(ranked.size()))));
        const Counts better =
            counts(search.space(), {ranked.begin(), ranked.begin() + static_cast<long>(good)});
        const Counts worse = counts(search.space(), {ranked.begin() + static_cast<long>(good), ranked.end()});
        std::optional<Candidate> best;
        double best_ratio = -INFINITY;
        for (int i = 0; i < kDrawn; ++i) {
            Candidate candidate = search.space().first();
            candidate.variant = ranked[search.random()() % good]->candidate.variant;
            double ratio = 0;
            for (size_t j = 0; j < better.size(); ++j) {
                const size_t option = draw(better[j], search.random());
                candidate.options[j] = static_cast<int>(option);
                ratio += std::log(better[j][option] / worse[j][option]);
            }
            // What was evaluated before teaches nothing, and the likeliest one soon is.
            if (ratio <= best_ratio || is_known(search, candidate)) continue;
            best_ratio = ratio;
            best = std::move(candidate);
        }
        return best ? best : new_candidate(search);
    }

    static Counts counts(const Space& space, const std::vector<const Trial*>& trials) {
        Counts shares;
        const double total = static_cast<double>(trials.size()) + kPrior;
        for (size_t i = 0; i < space.operators.size(); ++i) {
            const size_t options = space.operators[i].options.size();
            std::vector<double> share(options, kPrior / static_cast<double>(options) / total);
            for (const Trial* trial : trials)
                share[static_cast<size_t>(trial->candidate.options[i])] += 1 / total;
            shares.push_back(std::move(share));
        }
        return shares;
    }

    static size_t draw(const std::vector<double>& shares, std::mt19937_64& random) {
        double left = static_cast<double>(random() >> 11) * 0x1p-53;
        for (size_t i = 0; i + 1 < shares.size(); ++i) {
            left -= shares[i];
            if (left < 0) return i;
        }
        return shares.size() - 1;
    }

    double accuracy_weight_, cost_weight_;
};

}  // namespace

std::unique_ptr<Strategy> make_tpe(const Settings& settings) {
    settings.allow_keys({"accuracy_weight", "latency_weight"});
    return std::make_unique<Tpe>(settings.get("accuracy_weight", 1.0), settings.get("latency_weight", 1.0));
}

}  // namespace kilter
