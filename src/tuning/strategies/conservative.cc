// conservative: starts from FP32 and puts one family of operators after another on integers, keeping each that keeps the promise.
#include <algorithm>

#include <fmt/format.h>

#include "tuning/strategies/list.h"

namespace kilter {
namespace {

struct Family {
    std::string_view name;
    std::vector<std::string_view> types;
};

class Conservative : public Strategy {
  public:
    bool ends_by_itself() const override { return true; }

    void run(Search& search) override {
        const Space& space = search.space();
        const std::vector<Family> families{{"convolutions", {"Conv", "ConvTranspose"}},
                                           {"matrix products", {"MatMul"}},
                                           {"attention", {"Attention"}},
                                           {"additions and averages", {}}};
        // What only moves or clips values follows its neighbours and is left to them.
        const auto decides = [](const SpaceOperator& entry) {
            return (entry.role == Role::must || entry.role == Role::eligible) && entry.first_float() >= 0;
        };
        Candidate current = space.first();
        for (size_t i = 0; i < space.operators.size(); ++i)
            if (decides(space.operators[i])) current.options[i] = space.operators[i].first_float();
        for (const Family& family : families) {
            Candidate candidate = current;
            for (size_t i = 0; i < space.operators.size(); ++i) {
                const SpaceOperator& entry = space.operators[i];
                if (!decides(entry)) continue;
                const bool member = family.types.empty()
                                        ? entry.role == Role::eligible
                                        : std::ranges::find(family.types, entry.op) != family.types.end();
                if (member) candidate.options[i] = 0;
            }
            if (candidate == current) continue;
            if (search.evaluate(candidate, fmt::format("{} on integers", family.name)).met)
                current = candidate;
        }
    }
};

}  // namespace

std::unique_ptr<Strategy> make_conservative(const Settings& settings) {
    settings.allow_keys({});
    return std::make_unique<Conservative>();
}

}  // namespace kilter
