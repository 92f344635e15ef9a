// mse: all operators alike; then those whose own results are furthest from FP32 return to floating point, worst first.
#include "tuning/strategies/fallback.h"
#include "tuning/strategies/list.h"

namespace kilter {
namespace {

class Mse : public Strategy {
  public:
    void run(Search& search) override {
        const Candidate base = try_model_wise(search).candidate;
        const std::vector<double> errors = search.scores(Scoring::own, base);
        accumulate_fallback(search, base, by_score(search.space().quantized(base), errors));
    }
};

}  // namespace

std::unique_ptr<Strategy> make_mse(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Mse>();
}

}  // namespace kilter
