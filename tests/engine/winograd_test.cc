#include "engine/native/winograd.h"

#include <cmath>

#include "engine/testing.h"

namespace kilter::engine::winograd_test {

using testing::OpTest;
using testing::random;

struct Case {
    Shape x;
    int64_t out;
    std::vector<int64_t> pads;
};

// Sizes around the tile of four, asymmetric paddings, several images; channels the kernel takes and some it must refuse.
std::vector<Case> cases() {
    return {{{1, 32, 14, 14}, 32, {1, 1, 1, 1}}, {{2, 48, 9, 13}, 64, {1, 1, 1, 1}},
            {{1, 64, 7, 7}, 96, {1, 1, 1, 1}},   {{3, 32, 5, 6}, 64, {0, 0, 0, 0}},
            {{1, 64, 17, 4}, 32, {2, 0, 1, 2}},  {{1, 32, 40, 3}, 32, {0, 1, 2, 1}},
            {{1, 24, 12, 12}, 40, {1, 1, 1, 1}}, {{16, 512, 7, 7}, 32, {1, 1, 1, 1}},
            {{1, 1024, 7, 7}, 32, {1, 1, 1, 1}}};
}

OpTest conv(const Case& c, std::vector<std::string> post, std::vector<float> alphas,
            std::vector<float> betas) {
    OpTest test("Conv", std::string(kKilterDomain));
    // Results of about one, so that a clamp does not magnify the relative error.
    const double bound = 1.0 / std::sqrt(static_cast<double>(9 * c.x[1]));
    test.input(random(DType::f32, c.x, 1))
        .constant(random(DType::f32, {c.out, c.x[1], 3, 3}, 2, -bound, bound));
    test.constant(random(DType::f32, {c.out}, 3)).attribute("pads", c.pads).tolerance(2e-5);
    test.attribute("post_ops", std::move(post));
    test.attribute("post_alphas", std::move(alphas)).attribute("post_betas", std::move(betas));
    return test;
}

Shape result(const Case& c) {
    return {c.x[0], c.out, c.x[2] + c.pads[0] + c.pads[2] - 2, c.x[3] + c.pads[1] + c.pads[3] - 2};
}

TEST(Winograd, AgreesWithTheReference) {
    for (const Case& c : cases()) conv(c, {}, {}, {}).check();
}

TEST(Winograd, FusesAResidualAndAClamp) {
    for (const Case& c : cases()) {
        conv(c, {"relu"}, {0}, {0}).check();
        conv(c, {"add", "clip"}, {0, -1}, {0, 2}).input(random(DType::f32, result(c), 4)).check();
        conv(c, {"add", "relu", "tanh"}, {0, 0, 0}, {0, 0, 0})
            .convolved(random(DType::f32, result(c), 5))
            .check();
        // A gate of one number per channel is no residual.
        conv(c, {"mul", "relu"}, {0, 0}, {0, 0}).input(random(DType::f32, {1, c.out, 1, 1}, 6)).check();
    }
}

TEST(Winograd, RunsWhereItPays) {
    const WinogradShape large{1, 56, 56, 64, 64};
    if (!Winograd::supported(large)) GTEST_SKIP() << "this CPU has no AVX-512";
    EXPECT_EQ(Winograd::best_tile(large), 4);
    EXPECT_EQ(Winograd::best_tile({1, 7, 7, 512, 512}), 2);
    EXPECT_EQ(Winograd::best_tile({1, 56, 56, 16, 32}), 0);  // too few channels
    EXPECT_EQ(Winograd::best_tile({1, 2, 2, 512, 512}), 0);  // too few tiles
    EXPECT_EQ(Winograd::best_tile({1, 56, 56, 64, 40}), 0);  // no whole panel of output channels
    bool used = false;
    for (const StepReport& step : conv({{1, 64, 56, 56}, 64, {1, 1, 1, 1}}, {}, {}, {}).steps())
        used = used || step.kernel == "winograd_4x4:avx512";
    EXPECT_TRUE(used);
}

}  // namespace kilter::engine::winograd_test
