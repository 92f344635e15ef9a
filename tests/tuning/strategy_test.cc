#include "kilter/tuning/strategy.h"

#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "tuning/fake_backend.h"

namespace kilter::strategy_test {

using testing::error_of;
using testing::FakeBackend;
using testing::floats;
using testing::Ran;
using testing::two_way_space;

TEST(Strategy, KnowsThoseItComesWith) {
    const std::vector<std::string> names = strategy_names();
    for (const char* name :
         {"auto", "basic", "mse", "mse_v2", "bayesian", "random", "exhaustive", "tpe", "conservative"}) {
        EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
        EXPECT_NE(make_strategy(name), nullptr);
    }
}

TEST(Strategy, OnlySomeEndByThemselves) {
    for (const char* name : {"auto", "mse_v2", "conservative"})
        EXPECT_TRUE(make_strategy(name)->ends_by_itself()) << name;
    for (const char* name : {"basic", "mse", "random", "exhaustive", "bayesian", "tpe"})
        EXPECT_FALSE(make_strategy(name)->ends_by_itself()) << name;
}

TEST(Strategy, SaysWhichNameWasMeant) {
    const std::string error = error_of([] { make_strategy("bayesain"); });
    EXPECT_NE(error.find("there is no strategy 'bayesain'"), std::string::npos) << error;
    EXPECT_NE(error.find("did you mean 'bayesian'?"), std::string::npos) << error;
    EXPECT_NE(error_of([] { make_strategy("Auto"); }).find("did you mean 'auto'?"), std::string::npos);
    const std::string far = error_of([] { make_strategy("quantum annealing"); });
    EXPECT_EQ(far.find("did you mean"), std::string::npos) << far;
    EXPECT_NE(far.find("conservative, exhaustive"), std::string::npos) << far;  // all of them, in order
}

TEST(Strategy, RefusesSettingsItDoesNotHave) {
    for (const char* name :
         {"auto", "basic", "mse", "mse_v2", "bayesian", "random", "exhaustive", "tpe", "conservative"})
        EXPECT_NE(error_of([&] {
                      make_strategy(name, {{"sigopt_api_token", "x"}});
                  }).find("sigopt_api_token"),
                  std::string::npos)
            << name;
    EXPECT_NO_THROW(make_strategy("tpe", {{"accuracy_weight", 2}, {"latency_weight", 0.5}}));
    EXPECT_THROW(make_strategy("tpe", {{"accuracy_weight", "much"}}), Error);
}

// Everything in floating point but one operator, from the first to the last.
class OneByOne : public Strategy {
  public:
    explicit OneByOne(int start) : start_(static_cast<size_t>(start)) {}
    void run(Search& search) override {
        for (size_t i = start_; i < search.space().operators.size(); ++i)
            search.evaluate(floats(search.space(), {i}), "one");
    }

  private:
    size_t start_;
};

TEST(Strategy, OfAUserRunsLikeAnyOther) {
    register_strategy("one_by_one", [](const Settings& settings) {
        settings.allow_keys({"start"});
        return std::make_unique<OneByOne>(static_cast<int>(settings.get("start", 0)));
    });
    FakeBackend backend(two_way_space(4), {0.001, 0.001, 0.02, 0.001});
    const Ran ran("one_by_one", backend);
    EXPECT_EQ(ran.why, SearchOver::Why::success);
    EXPECT_EQ(ran.fallbacks(), (std::vector<std::vector<size_t>>{{0}, {1}, {2}}));
    EXPECT_THROW(make_strategy("one_by_one", {{"stop", 1}}), Error);

    const std::vector<std::string> names = strategy_names();
    EXPECT_NE(std::ranges::find(names, "one_by_one"), names.end());
    const auto again = [](const Settings&) { return std::make_unique<OneByOne>(0); };
    EXPECT_NE(error_of([&] { register_strategy("one_by_one", again); }).find("'one_by_one' already"),
              std::string::npos);
    EXPECT_NE(error_of([&] { register_strategy("auto", again); }).find("'auto' already"), std::string::npos);
    EXPECT_THROW(register_strategy("", again), Error);
}

}  // namespace kilter::strategy_test
