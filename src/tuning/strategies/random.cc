// random: independent random candidates, floating point included, until the trials or the candidates are used up.
#include "tuning/strategies/list.h"
#include "tuning/strategies/sampling.h"

namespace kilter {
namespace {

class Random : public Strategy {
  public:
    void run(Search& search) override {
        while (const auto candidate = new_candidate(search)) search.evaluate(*candidate, "drawn at random");
    }
};

}  // namespace

std::unique_ptr<Strategy> make_random(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Random>();
}

}  // namespace kilter
