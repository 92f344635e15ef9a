#include "kilter/tuning/space.h"

#include <set>

#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "tuning/fake_backend.h"

namespace kilter::space_test {

using testing::error_of;
using testing::plan_of;
using enum Precision;
using Of = Override::Of;

SpaceRule rule(Of of, std::string pattern = {}) {
    SpaceRule rule;
    rule.of = of;
    rule.pattern = std::move(pattern);
    return rule;
}

SpaceRule precisions(Of of, std::string pattern, std::vector<Precision> list) {
    SpaceRule made = rule(of, std::move(pattern));
    made.precisions = std::move(list);
    return made;
}

SpaceRule algorithms(Of of, std::string pattern, std::vector<RangeAlgorithm> list) {
    SpaceRule made = rule(of, std::move(pattern));
    made.algorithms = std::move(list);
    return made;
}

std::vector<Precision> precisions_of(const SpaceOperator& entry) {
    std::vector<Precision> list;
    for (const OperatorPlan& option : entry.options)
        if (list.empty() || list.back() != option.precision) list.push_back(option.precision);
    return list;
}

std::vector<RangeAlgorithm> algorithms_of(const SpaceOperator& entry) {
    std::vector<RangeAlgorithm> list;
    for (const OperatorPlan& option : entry.options)
        if (option.precision == int8) list.push_back(option.activation.algorithm);
    return list;
}

TEST(Space, PutsThePlansChoiceFirstAndFloatingPointLast) {
    Plan plan = plan_of({"Conv", "Add"});
    plan.operators[0].activation.algorithm = RangeAlgorithm::kl;
    plan.operators[0].activation.scheme = Scheme::sym;
    const Space space = make_space(plan);
    EXPECT_EQ(space.operators[0].options[0], plan.operators[0]);
    EXPECT_EQ(algorithms_of(space.operators[0]),
              (std::vector{RangeAlgorithm::kl, RangeAlgorithm::minmax, RangeAlgorithm::mse}));
    EXPECT_EQ(precisions_of(space.operators[0]), (std::vector{int8, f32}));
    EXPECT_EQ(space.operators[0].role, Role::must);
    // Only products have alternatives by themselves: the others would multiply the space for nothing.
    EXPECT_EQ(space.operators[1].options.size(), 2U);
    EXPECT_EQ(space.operators[1].role, Role::eligible);
    EXPECT_EQ(space.plan(space.first()), plan);
}

TEST(Space, OffersBf16OnlyOnDemandAndBeforeF32) {
    const Space space = make_space(plan_of({"Conv", "Add"}), {precisions(Of::model, "", {f32, bf16, int8})});
    EXPECT_EQ(precisions_of(space.operators[0]), (std::vector{int8, bf16, f32}));
    EXPECT_EQ(precisions_of(space.operators[1]), (std::vector{int8, f32}));  // cannot do bf16
    EXPECT_EQ(space.operators[0].options[static_cast<size_t>(space.operators[0].first_float())].precision,
              f32);
    EXPECT_EQ(space.operators[1].first(bf16), -1);
    const Space only = make_space(plan_of({"Conv"}), {precisions(Of::model, "", {int8, bf16})});
    EXPECT_EQ(only.operators[0].first_float(), only.operators[0].first(bf16));
    const Space pure = make_space(plan_of({"Conv"}), {precisions(Of::model, "", {int8})});
    EXPECT_EQ(pure.operators[0].first_float(), -1);
    EXPECT_TRUE(pure.quantized(pure.first()).empty());
}

TEST(Space, MultipliesTheListsOfARule) {
    SpaceRule all = rule(Of::model);
    all.schemes = {Scheme::sym, Scheme::asym};
    all.algorithms = {RangeAlgorithm::percentile, RangeAlgorithm::minmax};
    all.granularities = {Granularity::per_tensor, Granularity::per_channel};
    all.bits = {7, 8};
    const Space space = make_space(plan_of({"Conv", "Add"}), {all});
    const std::vector<OperatorPlan>& options = space.operators[0].options;
    ASSERT_EQ(options.size(), 17U);
    for (size_t i = 0; i < options.size(); ++i) EXPECT_EQ(std::ranges::count(options, options[i]), 1) << i;
    // In the order they were listed.
    EXPECT_EQ(options[0].activation.scheme, Scheme::sym);
    EXPECT_EQ(options[0].activation.algorithm, RangeAlgorithm::percentile);
    EXPECT_EQ(options[0].weights.granularity, Granularity::per_tensor);
    EXPECT_EQ(options[0].weights.bits, 7);
    // An addition has no weights: two schemes, two algorithms, f32.
    EXPECT_EQ(space.operators[1].options.size(), 5U);
}

TEST(Space, RefusesBitsThatNoWeightsHave) {
    for (const int bits : {-1, 0, 1, 9, 16}) {
        SpaceRule made = rule(Of::model);
        made.bits = {8, bits};
        const std::string error = error_of([&] { make_space(plan_of({"Conv"}), {made}); });
        EXPECT_NE(error.find("expected 2 to 8"), std::string::npos) << bits << ": " << error;
    }
}

TEST(Space, ANameBeatsATypeBeatsTheModelInWhateverOrderTheyCome) {
    std::vector<SpaceRule> rules{algorithms(Of::name, "op0", {RangeAlgorithm::mse}),
                                 algorithms(Of::type, "Conv", {RangeAlgorithm::kl}),
                                 algorithms(Of::model, "", {RangeAlgorithm::minmax})};
    for (int order = 0; order < 2; ++order) {
        const Space space = make_space(plan_of({"Conv", "Conv", "MatMul"}), rules);
        EXPECT_EQ(algorithms_of(space.operators[0]), std::vector{RangeAlgorithm::mse});
        EXPECT_EQ(algorithms_of(space.operators[1]), std::vector{RangeAlgorithm::kl});
        EXPECT_EQ(algorithms_of(space.operators[2]), std::vector{RangeAlgorithm::minmax});
        std::ranges::reverse(rules);
    }
}

TEST(Space, RulesForDifferentThingsAddUp) {
    SpaceRule tensor = rule(Of::type, "Conv");
    tensor.granularities = {Granularity::per_tensor};
    const Space space = make_space(plan_of({"Conv"}), {algorithms(Of::model, "", {RangeAlgorithm::kl}),
                                                       tensor, precisions(Of::name, "op*", {int8})});
    ASSERT_EQ(space.operators[0].options.size(), 1U);
    const OperatorPlan& only = space.operators[0].options[0];
    EXPECT_EQ(only.activation.algorithm, RangeAlgorithm::kl);
    EXPECT_EQ(only.weights.granularity, Granularity::per_tensor);
}

TEST(Space, ExcludedOperatorsStayUnlessTheyAreNamed) {
    Plan plan = plan_of({"Conv", "Conv"});
    plan.operators[0].precision = f32;
    const auto first = [&](const std::vector<SpaceRule>& rules) {
        const Space space = make_space(plan, rules);
        EXPECT_EQ(space.operators[1].options[0].precision, int8);
        return precisions_of(space.operators[0]);
    };
    EXPECT_EQ(first({}), std::vector{f32});
    EXPECT_EQ(first({algorithms(Of::model, "", {RangeAlgorithm::kl})}), std::vector{f32});
    EXPECT_EQ(first({precisions(Of::model, "", {int8, f32})}), std::vector{f32});
    EXPECT_EQ(first({precisions(Of::name, "op0", {int8, f32})}), (std::vector{int8, f32}));
}

TEST(Space, NamesOfFusedOperatorsCount) {
    Plan plan = plan_of({"Conv", "Conv"});
    plan.operators[1].origins = {"stem/conv", "stem/relu"};
    const Space space = make_space(plan, {precisions(Of::name, "stem/relu", {f32})});
    EXPECT_EQ(precisions_of(space.operators[0]), (std::vector{int8, f32}));
    EXPECT_EQ(precisions_of(space.operators[1]), std::vector{f32});
}

TEST(Space, SaysWhichRuleConcernsNothingAndWhichAsksTooMuch) {
    const Plan plan = plan_of({"Conv", "Add"});
    EXPECT_NE(error_of([&] { make_space(plan, {precisions(Of::name, "op7", {f32})}); }).find("'op7'"),
              std::string::npos);
    EXPECT_NE(error_of([&] { make_space(plan, {precisions(Of::type, "MatMul", {f32})}); }).find("'MatMul'"),
              std::string::npos);
    EXPECT_NE(error_of([&] {
                  make_space(plan, {precisions(Of::name, "op1", {bf16})});
              }).find("operator 'op1' (Add)"),
              std::string::npos);
    EXPECT_NE(error_of([&] { make_space(plan_of({"Sigmoid"})); }).find("Sigmoid"), std::string::npos);
}

TEST(Space, CountsAndSummarizesACandidate) {
    Space space =
        make_space(plan_of({"Conv", "Conv", "Add"}), {precisions(Of::type, "Conv", {int8, bf16, f32})});
    Candidate candidate = space.first();
    EXPECT_EQ(space.summary(candidate), "int8 3");
    candidate.options[0] = space.operators[0].first(bf16);
    candidate.options[2] = space.operators[2].first_float();
    EXPECT_EQ(space.summary(candidate), "int8 1, bf16 1, f32 1");
    EXPECT_EQ(space.count(candidate, int8), 1U);
    EXPECT_EQ(space.quantized(candidate), std::vector<size_t>{1});
    EXPECT_FALSE(space.is_quantized(candidate, 0));
    space.variants.push_back({"equalization", 0, {}});
    candidate.variant = 1;
    EXPECT_EQ(space.summary(candidate), "int8 1, bf16 1, f32 1, equalization");
    EXPECT_EQ(space.plan(candidate).operators[0].precision, bf16);
    EXPECT_THROW(space.plan({{0, 0}, 0}), Error);
}

TEST(Space, GivesEveryCandidateItsOwnKey) {
    Space space = make_space(plan_of({"Conv", "MatMul", "Add"}));
    space.variants = {{"", 100, {}}, {"equalization", 100, {}}, {"", 200, {}}, {"", 100, {}}};
    space.variants[3].recipes.smooth_quant = true;
    std::set<uint64_t> keys;
    size_t count = 0;
    for (int variant = 0; variant < 4; ++variant)
        for (int a = 0; a < 4; ++a)
            for (int b = 0; b < 4; ++b)
                for (int c = 0; c < 2; ++c, ++count) keys.insert(space.key({{a, b, c}, variant}));
    EXPECT_EQ(keys.size(), count);
    // The same in another run: it depends on nothing but what the candidate is.
    Space again = make_space(plan_of({"Conv", "MatMul", "Add"}));
    again.variants = space.variants;
    EXPECT_EQ(again.key({{1, 2, 0}, 1}), space.key({{1, 2, 0}, 1}));
}

TEST(Space, ModelWiseCandidatesTreatATypeAlikeAndUniformOnesComeFirst) {
    const Space space = make_space(plan_of({"Conv", "MatMul", "Conv"}));
    const std::vector<Candidate> candidates = space.model_wise();
    ASSERT_EQ(candidates.size(), 9U);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(candidates[static_cast<size_t>(i)].options, (std::vector{i, i, i}));
    std::set<std::vector<int>> distinct;
    for (const Candidate& candidate : candidates) {
        EXPECT_EQ(candidate.options[0], candidate.options[2]);
        EXPECT_EQ(space.count(candidate, int8), 3U);
        distinct.insert(candidate.options);
    }
    EXPECT_EQ(distinct.size(), 9U);
    EXPECT_EQ(candidates[3].options, (std::vector{0, 1, 0}));
}

TEST(Space, ModelWiseCandidatesAreUniformFirstHoweverFewAreAskedFor) {
    const Space space = make_space(plan_of({"Conv", "MatMul", "ConvTranspose", "Attention"}));
    const std::vector<Candidate> two = space.model_wise(2);
    ASSERT_EQ(two.size(), 2U);
    EXPECT_EQ(two[0].options, std::vector<int>(4, 0));
    EXPECT_EQ(two[1].options, std::vector<int>(4, 1));
    const std::vector<Candidate> all = space.model_wise();
    EXPECT_EQ(all.size(), 81U);
    for (const size_t limit : {1U, 3U, 17U, 80U})
        EXPECT_EQ(space.model_wise(limit),
                  std::vector<Candidate>(all.begin(), all.begin() + static_cast<long>(limit)))
            << limit;
}

TEST(Space, ModelWiseCandidatesLeaveExcludedOperatorsAndNarrowOnesAlone) {
    Plan plan = plan_of({"Conv", "Conv", "Conv"});
    plan.operators[1].precision = f32;
    const Space space =
        make_space(plan, {algorithms(Of::name, "op2", {RangeAlgorithm::kl, RangeAlgorithm::minmax})});
    const std::vector<Candidate> candidates = space.model_wise();
    ASSERT_EQ(candidates.size(), 2U);  // op2 has only two ways
    EXPECT_EQ(candidates[1].options, (std::vector{1, 0, 1}));
    Plan nothing = plan_of({"Conv"});
    nothing.operators[0].precision = f32;
    EXPECT_EQ(make_space(nothing).model_wise(), std::vector<Candidate>{make_space(nothing).first()});
}

}  // namespace kilter::space_test
