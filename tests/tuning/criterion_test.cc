#include "kilter/tuning/criterion.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "tuning/fake_backend.h"

namespace kilter::criterion_test {

using testing::error_of;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Criterion criterion(bool relative, double loss, bool higher) { return {relative, loss, {higher}, {}}; }

struct Case {
    const char* what;
    Criterion criterion;
    double baseline, limit, passes, fails;
};

TEST(Criterion, KnowsTheWorstValueThatPasses) {
    const Case cases[] = {
        {"relative, higher", criterion(true, 0.01, true), 80, 79.2, 79.2001, 79.1999},
        {"relative, lower", criterion(true, 0.01, false), 80, 80.8, 80.7999, 80.8001},
        {"absolute, higher", criterion(false, 0.5, true), 80, 79.5, 79.5001, 79.4999},
        {"absolute, lower", criterion(false, 0.5, false), 80, 80.5, 80.4999, 80.5001},
        {"improvement, higher", criterion(true, -0.1, true), 80, 88, 88.001, 87.999},
        {"improvement, lower", criterion(false, -1, false), 80, 79, 78.999, 79.001},
        {"negative baseline, higher", criterion(true, 0.01, true), -2, -2.02, -2.0199, -2.0201},
        {"negative baseline, lower", criterion(true, 0.01, false), -2, -1.98, -1.9801, -1.9799},
        {"negative baseline, absolute", criterion(false, 0.5, true), -2, -2.5, -2.4999, -2.5001},
        {"zero baseline, higher", criterion(true, 0.01, true), 0, 0, 0.001, -0.001},
        {"zero baseline, lower", criterion(true, 0.01, false), 0, 0, -0.001, 0.001},
        {"zero baseline, absolute", criterion(false, 0.1, false), 0, 0.1, 0.099, 0.101},
    };
    for (const Case& c : cases) {
        EXPECT_NEAR(c.criterion.limit({c.baseline}), c.limit, 1e-12) << c.what;
        EXPECT_TRUE(c.criterion.met({c.passes}, {c.baseline})) << c.what;
        EXPECT_FALSE(c.criterion.met({c.fails}, {c.baseline})) << c.what;
        EXPECT_TRUE(c.criterion.met({c.criterion.limit({c.baseline})}, {c.baseline})) << c.what;
    }
}

TEST(Criterion, FloatingPointItselfAlwaysPassesUnlessAnImprovementIsAskedFor) {
    for (const double baseline : {0.0, 1e-9, 0.7113, -3.0, 1e5})
        for (const bool relative : {false, true})
            for (const bool higher : {false, true}) {
                EXPECT_TRUE(criterion(relative, 0, higher).met({baseline}, {baseline})) << baseline;
                EXPECT_TRUE(criterion(relative, 0.01, higher).met({baseline}, {baseline})) << baseline;
                EXPECT_EQ(criterion(relative, -0.01, higher).met({baseline}, {baseline}),
                          relative && baseline == 0)
                    << baseline;
            }
}

TEST(Criterion, IsInclusiveWhateverTheRounding) {
    // Accuracies are quotients: of n samples, exactly the allowed share may be lost.
    for (int n = 10; n <= 2000; n += 10) {
        const double baseline = static_cast<double>(n) / (n + 7);
        const double limit = 0.9 * n / (n + 7);
        const double beyond = (0.9 * n - 0.01) / (n + 7);
        EXPECT_TRUE(criterion(true, 0.1, true).met({limit}, {baseline})) << n;
        EXPECT_FALSE(criterion(true, 0.1, true).met({beyond}, {baseline})) << n;
    }
    EXPECT_TRUE(criterion(true, 0.1, true).met({0.81}, {0.9}));
    EXPECT_TRUE(criterion(false, 0.1, true).met({0.2}, {0.3}));
    EXPECT_TRUE(criterion(false, 0.1, false).met({0.3}, {0.2}));
}

TEST(Criterion, SaysHowFarBeyondTheLimitAsAShareOfTheBaseline) {
    EXPECT_NEAR(criterion(true, 0.01, true).excess({0.78}, {0.8}), 0.015, 1e-12);
    EXPECT_NEAR(criterion(true, 0.01, false).excess({0.84}, {0.8}), 0.04, 1e-12);
    EXPECT_NEAR(criterion(true, 0.01, true).excess({0.8}, {0.8}), -0.01, 1e-12);
    EXPECT_NEAR(criterion(true, 0.01, true).excess({-0.5}, {0}), 0.5, 1e-12);
}

TEST(Criterion, NoNumberIsNoSuccess) {
    for (const bool higher : {false, true}) {
        EXPECT_FALSE(criterion(true, 0.5, higher).met({kNan}, {0.5}));
        EXPECT_EQ(criterion(true, 0.5, higher).excess({kNan}, {0.5}), kInfinity);
        // Nothing can be promised against a baseline that is no number either.
        for (const double baseline : {kNan, kInfinity, -kInfinity})
            for (const double accuracy : {0.5, kNan, kInfinity, -kInfinity}) {
                EXPECT_FALSE(criterion(true, 0.5, higher).met({accuracy}, {baseline}))
                    << baseline << " " << accuracy;
                EXPECT_FALSE(std::isnan(criterion(true, 0.5, higher).excess({accuracy}, {baseline})));
            }
    }
    EXPECT_FALSE(criterion(true, 0.5, true).met({-kInfinity}, {0.5}));
    EXPECT_FALSE(criterion(true, 0.5, false).met({kInfinity}, {0.5}));
}

TEST(Criterion, EveryOneOfSeveralMetricsHasToPass) {
    const Criterion both{true, 0.01, {true, false}, {}};
    const Accuracy baseline{0.8, 2};
    EXPECT_TRUE(both.met({0.792, 2.02}, baseline));
    EXPECT_FALSE(both.met({0.79, 2}, baseline));
    EXPECT_FALSE(both.met({0.9, 2.03}, baseline));
    EXPECT_FALSE(both.met({0.9, kNan}, baseline));
    EXPECT_FALSE(both.met({kNan, 1}, baseline));
    EXPECT_NEAR(both.limit(baseline, 1), 2.02, 1e-12);
    EXPECT_NEAR(both.excess({0.784, 2.1}, baseline), 0.04, 1e-12);
}

TEST(Criterion, WithWeightsOneMetricMayMakeUpForAnother) {
    const Criterion weighted{true, 0.01, {true, true}, {0.75, 0.25}};
    const Accuracy baseline{0.8, 0.8};
    EXPECT_TRUE(weighted.met({0.78, 0.84}, baseline));
    EXPECT_FALSE(weighted.met({0.78, 0.82}, baseline));
    EXPECT_FALSE(weighted.met({0.9, kNan}, baseline));
    // What should be low counts against what should be high.
    const Criterion mixed{false, 0.1, {true, false}, {1, 1}};
    EXPECT_TRUE(mixed.met({0.9, 0.3}, {0.8, 0.2}));
    EXPECT_FALSE(mixed.met({0.65, 0.3}, {0.8, 0.2}));
    EXPECT_TRUE(mixed.met({0.7, 0.1}, {0.8, 0.2}));
    // A weight of zero takes a metric out.
    const Criterion first{true, 0.01, {true, true}, {1, 0}};
    EXPECT_TRUE(first.met({0.8, 0.1}, baseline));
}

TEST(Criterion, RefusesFiguresThatDoNotFit) {
    const Criterion one;
    EXPECT_NE(error_of([&] { one.excess({1, 2}, {1}); }).find("2 figures"), std::string::npos);
    EXPECT_THROW(one.excess({}, {}), Error);
    const Criterion weighted{true, 0.01, {true, true}, {1}};
    EXPECT_NE(error_of([&] {
                  weighted.excess({1, 2}, {1, 2});
              }).find("1 weights for 2 metrics"),
              std::string::npos);
}

TEST(Criterion, IsReadFromText) {
    EXPECT_TRUE(Criterion::parse("1%").relative);
    EXPECT_DOUBLE_EQ(Criterion::parse("1%").loss, 0.01);
    EXPECT_DOUBLE_EQ(Criterion::parse("0.01").loss, 0.01);
    EXPECT_DOUBLE_EQ(Criterion::parse("1e-2").loss, 0.01);
    EXPECT_DOUBLE_EQ(Criterion::parse("0").loss, 0);
    EXPECT_DOUBLE_EQ(Criterion::parse("0.3%").loss, 0.003);
    EXPECT_DOUBLE_EQ(Criterion::parse("-2%").loss, -0.02);
    EXPECT_FALSE(Criterion::parse("abs:0.5").relative);
    EXPECT_DOUBLE_EQ(Criterion::parse("abs:0.5").loss, 0.5);
    EXPECT_DOUBLE_EQ(Criterion::parse("abs:-3").loss, -3);
    EXPECT_EQ(Criterion::parse("1%").text(), "1 % relative");
    EXPECT_EQ(Criterion::parse("abs:0.5").text(), "0.5 absolute");
}

TEST(Criterion, SaysWhatIsWrongWithAText) {
    for (const char* text : {"", "%", "abc", "1 percent", "1%%", "abs:", "abs:x", "abs:1%", "nan", "inf",
                             "abs:inf", "0.01x", "0,01"}) {
        const std::string error = error_of([&] { Criterion::parse(text); });
        EXPECT_NE(error.find("a loss such as 1%, 0.01 or abs:0.5"), std::string::npos)
            << text << ": " << error;
    }
    for (const char* text : {"1", "100%", "-100%", "5", "250%"}) {
        const std::string error = error_of([&] { Criterion::parse(text); });
        EXPECT_NE(error.find("out of range"), std::string::npos) << text;
        EXPECT_NE(error.find("abs:"), std::string::npos) << text;
    }
}

TEST(Objective, IsAShareOfWhatFloatingPointCosts) {
    const Cost baseline{10, 4000, 100};
    const Cost cost{4, 1000, 80};
    EXPECT_DOUBLE_EQ(Objective::parse("performance").value(cost, 0, baseline), 0.4);
    EXPECT_DOUBLE_EQ(Objective::parse("modelsize").value(cost, 0, baseline), 0.25);
    EXPECT_DOUBLE_EQ(Objective::parse("footprint").value(cost, 0, baseline), 0.8);
    for (const char* text : {"performance", "modelsize", "footprint", "performance=3,modelsize=1"})
        EXPECT_DOUBLE_EQ(Objective::parse(text).value(baseline, 0, baseline), 1) << text;
    // The accuracy is the better the further it is from the limit.
    EXPECT_LT(Objective::parse("accuracy").value(cost, -0.01, baseline),
              Objective::parse("accuracy").value(cost, 0.01, baseline));
    // What nobody measured does not decide.
    EXPECT_DOUBLE_EQ(Objective::parse("footprint").value({}, 0, {}), 1);
}

TEST(Objective, WeighsItsParts) {
    const Cost baseline{10, 4000, 100};
    const Cost cost{4, 1000, 80};
    EXPECT_DOUBLE_EQ(Objective::parse("performance=0.7,footprint=0.3").value(cost, 0, baseline), 0.52);
    EXPECT_DOUBLE_EQ(Objective::parse("performance=7,footprint=3").value(cost, 0, baseline), 0.52);
    EXPECT_DOUBLE_EQ(Objective::parse("performance,modelsize").value(cost, 0, baseline), 0.325);
    EXPECT_DOUBLE_EQ(Objective::parse("performance,modelsize=0").value(cost, 0, baseline), 0.4);
}

TEST(Objective, IsReadFromTextAndWrittenBack) {
    EXPECT_EQ(Objective{}.text(), "performance");
    EXPECT_EQ(Objective::parse("modelsize").text(), "modelsize");
    EXPECT_EQ(Objective::parse("performance=0.7,footprint=0.3").text(), "performance=0.7,footprint=0.3");
    EXPECT_TRUE(Objective::parse("performance,accuracy").reads(Objective::What::accuracy));
    EXPECT_FALSE(Objective::parse("performance,accuracy").reads(Objective::What::modelsize));
    const std::string unknown = error_of([] { Objective::parse("speed"); });
    EXPECT_NE(unknown.find("'speed'"), std::string::npos);
    EXPECT_NE(unknown.find("performance, modelsize, footprint, accuracy"), std::string::npos);
    for (const char* text : {"", "performance,", "performance=", "performance=x", "performance=nan",
                             "performance=-1", "performance modelsize"})
        EXPECT_THROW(Objective::parse(text), Error) << text;
}

}  // namespace kilter::criterion_test
