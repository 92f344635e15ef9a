// exhaustive: every candidate there is, the choice of the last operator changing fastest.
#include "tuning/strategies/list.h"
#include "tuning/strategies/sampling.h"

namespace kilter {
namespace {

class Exhaustive : public Strategy {
  public:
    void run(Search& search) override {
        Candidate candidate = search.space().first();
        do {
            search.evaluate(candidate, "next in order");
        } while (advance(search.space(), candidate));
    }
};

}  // namespace

std::unique_ptr<Strategy> make_exhaustive(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Exhaustive>();
}

}  // namespace kilter
