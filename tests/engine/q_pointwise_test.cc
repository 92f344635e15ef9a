// 1x1 convolutions with few input channels: every width of panel, odd numbers of pixels, clamps.
#include <fmt/format.h>

#include "engine/native/vnni.h"
#include "engine/testing.h"
#include "graph/onnx_dtype.h"

namespace kilter::engine::testing::q_pointwise_test {

struct Case {
    Shape x = {2, 16, 5, 7};
    int64_t columns = 96;
    int64_t source_zero_point = 117;
    DType result = DType::u8;
    int64_t zero_point = 100;
    bool bias = true, per_channel = true;
    std::string clamp = {};
};

void check(const Case& c) {
    SCOPED_TRACE(fmt::format("{} to {} channels of {}, zero points {} and {}, {}", to_string(c.x), c.columns,
                             name(c.result), c.source_zero_point, c.zero_point, c.clamp));
    OpTest test("QConv", std::string(kKilterDomain));
    test.input(random(DType::u8, c.x, 1, 0, 256));
    Shape weights(c.x.size(), 1);
    weights[0] = c.columns;
    weights[1] = c.x[1];
    test.constant(random(DType::i8, weights, 2, -127, 128));
    if (c.bias)
        test.constant(random(DType::f32, {c.columns}, 3));
    else
        test.absent();
    const Tensor scales = random(DType::f32, {c.per_channel ? c.columns : 1}, 4, 0.002, 0.01);
    test.attribute("w_scale", std::vector<float>(scales.as<float>().begin(), scales.as<float>().end()));
    test.attribute("x_scale", 0.02F).attribute("x_zero_point", c.source_zero_point);
    test.attribute("y_dtype", onnx_code(c.result)).attribute("y_scale", 0.05F);
    test.attribute("y_zero_point", c.zero_point);
    if (!c.clamp.empty()) {
        test.attribute("post_ops", std::vector<std::string>{c.clamp});
        test.attribute("post_alphas", std::vector<float>{c.clamp == "clip" ? -0.7F : 0.0F});
        test.attribute("post_betas", std::vector<float>{c.clamp == "clip" ? 1.3F : 0.0F});
    }
    test.check();
    if (!has_vnni() || has_amx()) return;
    size_t found = 0;
    for (const StepReport& step : test.steps()) found += step.kernel == "pointwise:avx512_vnni" ? 1 : 0;
    EXPECT_EQ(found, 1);
}

TEST(QPointwise, GivesTheBitsOfTheScalarKernelForEveryShape) {
    for (const int64_t depth : {4, 24, 64})
        for (const int64_t columns : {48, 50, 64, 95, 96, 160})
            for (const Shape& image : {Shape{1, 1}, Shape{5, 7}, Shape{33, 24}})
                check({.x = {2, depth, image[0], image[1]}, .columns = columns});
    check({.x = {1, 16, 9}});
    check({.x = {1, 16, 3, 4, 5}});
}

TEST(QPointwise, GivesTheBitsOfTheScalarKernelForEveryResult) {
    for (const int64_t source_zero_point : {0, 200})
        for (const auto& [result, zero_point] :
             {std::pair{DType::u8, 0}, std::pair{DType::u8, 255}, std::pair{DType::i8, -9}})
            for (const std::string clamp : {"", "relu", "clip"})
                for (const bool simple : {false, true})
                    check({.source_zero_point = source_zero_point,
                           .result = result,
                           .zero_point = zero_point,
                           .bias = !simple,
                           .per_channel = !simple,
                           .clamp = clamp});
}

TEST(QPointwise, SaturatesWhatNoIntegerHolds) {
    OpTest test("QConv", std::string(kKilterDomain));
    test.input(random(DType::u8, {1, 16, 3, 3}, 1, 0, 256));
    test.constant(random(DType::i8, {48, 16, 1, 1}, 2, -127, 128));
    test.attribute("w_scale", std::vector<float>{1e6F}).attribute("x_scale", 1.0F);
    test.attribute("y_dtype", onnx_code(DType::u8))
        .attribute("y_scale", 1e-6F)
        .attribute("y_zero_point", int64_t{7});
    test.check();
}

}  // namespace kilter::engine::testing::q_pointwise_test
