// exhaustive: every candidate there is, the choice of the last operator changing fastest.
#include "tuning/strategies/list.h"

namespace kilter {
namespace {

class Exhaustive : public Strategy {
  public:
    void run(Search& search) override {
        const Space& space = search.space();
        for (int variant = 0; variant < space.asked_variants; ++variant) {
            Candidate candidate = space.first();
            candidate.variant = variant;
            do {
                search.evaluate(candidate, "next in order");
            } while (advance(space, candidate));
        }
    }

  private:
    static bool advance(const Space& space, Candidate& candidate) {
        for (size_t i = candidate.options.size(); i-- > 0;) {
            if (++candidate.options[i] < static_cast<int>(space.operators[i].options.size())) return true;
            candidate.options[i] = 0;
        }
        return false;
    }
};

}  // namespace

std::unique_ptr<Strategy> make_exhaustive(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Exhaustive>();
}

}  // namespace kilter
