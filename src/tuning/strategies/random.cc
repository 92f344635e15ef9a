// random: independent random candidates, floating point included, until the trials are used up.
#include "tuning/strategies/list.h"
#include "tuning/strategies/sampling.h"

namespace kilter {
namespace {

class Random : public Strategy {
  public:
    void run(Search& search) override {
        // Candidates come up twice in small spaces: those cost nothing, but somewhere it has to end.
        const double limit = 100 * size_of(search.space());
        for (double drawn = 0; drawn < limit; ++drawn)
            search.evaluate(random_candidate(search), "drawn at random");
    }
};

}  // namespace

std::unique_ptr<Strategy> make_random(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Random>();
}

}  // namespace kilter
