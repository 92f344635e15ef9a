#include <limits>

#include "ops/run_op.h"

namespace kilter::ops_resize_test {

using testing::attributes;
using testing::random_tensor;
using testing::run_op;
using Ints = std::vector<int64_t>;

Tensor floats(const std::vector<float>& values) {
    return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}
Tensor ints(const Ints& values) { return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values); }

Tensor by_scale(const Tensor& x, const std::vector<float>& scales, const Attributes& options = {}) {
    return run_op("Resize", {x, Tensor(), floats(scales)}, options)[0];
}

Tensor by_size(const Tensor& x, const Ints& sizes, const Attributes& options = {}) {
    return run_op("Resize", {x, Tensor(), Tensor(), ints(sizes)}, options)[0];
}

Attributes mode(const char* name, const char* coordinates) {
    return attributes(
        {{"mode", std::string(name)}, {"coordinate_transformation_mode", std::string(coordinates)}});
}

TEST(Resize, NearestRepeatsElements) {
    const Tensor x = Tensor::of<float>({1, 1, 2}, {1, 2});
    Attributes options = mode("nearest", "asymmetric");
    options.set("nearest_mode", std::string("floor"));
    testing::expect_near(by_scale(x, {1, 1, 3}, options), Tensor::of<float>({1, 1, 6}, {1, 1, 1, 2, 2, 2}));
}

TEST(Resize, LinearReproducesALine) {
    const Tensor x = Tensor::of<float>({1, 1, 3}, {0, 2, 4});
    testing::expect_near(by_size(x, {1, 1, 5}, mode("linear", "align_corners")),
                         Tensor::of<float>({1, 1, 5}, {0, 1, 2, 3, 4}));
    testing::expect_near(by_scale(x, {1, 1, 2}, mode("linear", "half_pixel")),
                         Tensor::of<float>({1, 1, 6}, {0, 0.5F, 1.5F, 2.5F, 3.5F, 4}));
}

TEST(Resize, CubicReproducesAConstant) {
    const Tensor x = Tensor::filled(DType::f32, {1, 1, 4, 5}, 3);
    for (const int64_t exclude : {0, 1})
        for (const int64_t antialias : {0, 1}) {
            Attributes options = mode("cubic", "half_pixel");
            options.set("exclude_outside", exclude);
            options.set("antialias", antialias);
            testing::expect_near(by_size(x, {1, 1, 7, 3}, options),
                                 Tensor::filled(DType::f32, {1, 1, 7, 3}, 3));
        }
}

TEST(Resize, AntialiasAveragesWhatItSkips) {
    const Tensor x = Tensor::of<float>({1, 1, 8}, {0, 8, 0, 8, 0, 8, 0, 8});
    Attributes options = mode("linear", "half_pixel");
    options.set("antialias", int64_t{1});
    const Tensor y = by_scale(x, {1, 1, 0.25F}, options);
    for (const float value : y.as<float>()) EXPECT_NEAR(value, 4, 1.1);
}

TEST(Resize, KeepsTheAspectRatioWhenAsked) {
    const Tensor x = random_tensor({1, 1, 4, 8}, 1);
    Attributes options =
        attributes({{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", std::string("not_larger")}});
    EXPECT_EQ(by_size(x, {6, 6}, options).shape(), (Shape{1, 1, 3, 6}));
    options.set("keep_aspect_ratio_policy", std::string("not_smaller"));
    EXPECT_EQ(by_size(x, {6, 6}, options).shape(), (Shape{1, 1, 6, 12}));
}

TEST(Resize, CropsAndExtrapolates) {
    const Tensor x = Tensor::of<float>({1, 1, 3}, {1, 2, 3});
    Attributes options = mode("linear", "tf_crop_and_resize");
    options.set("extrapolation_value", -1.0F);
    const Tensor y =
        run_op("Resize", {x, floats({0, 0, 0.5F, 1, 1, 1.5F}), Tensor(), ints({1, 1, 3})}, options)[0];
    testing::expect_near(y, Tensor::of<float>({1, 1, 3}, {2, 3, -1}));
}

TEST(Resize, InfersWhatItCan) {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {Dim("batch"), 3, Dim("height"), 10}});
    Value* y = graph.add("Resize", {x, nullptr, graph.add_constant(floats({1, 1, 2, 0.5F}))});
    graph.add_output(y);
    infer_types(graph);
    EXPECT_EQ(to_string(y->type), "f32[batch, 3, ?, 5]");
}

TEST(Resize, RejectsNonsense) {
    const Tensor x = random_tensor({1, 1, 4, 4}, 1);
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_THROW(by_scale(x, {1, 1, 2}), Error);
    for (const float hostile : {0.0F, -1.0F, infinity, 1e30F, std::nanf("")})
        EXPECT_THROW(by_scale(x, {1, 1, 1, hostile}), Error);
    EXPECT_THROW(by_size(x, {1, 1, -1, 4}), Error);
    EXPECT_THROW(by_size(x, {1, 1, std::numeric_limits<int64_t>::max(), 4}), Error);
    EXPECT_THROW(by_size(x, {4, 4}, attributes({{"axes", Ints{3, 3}}})), Error);
    EXPECT_THROW(by_size(x, {4, 4}, attributes({{"axes", Ints{3, 4}}})), Error);
    EXPECT_THROW(by_size(x, {1, 1, 4, 4}, mode("area", "half_pixel")), Error);
    EXPECT_THROW(run_op("Resize", {x}), Error);
}

TEST(GridSample, OfTheIdentityGridIsTheImage) {
    const Tensor x = random_tensor({2, 3, 4, 5}, 1);
    const Tensor theta = Tensor::of<float>({2, 2, 3}, {1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0});
    for (const int64_t corners : {0, 1})
        for (const char* kind : {"linear", "nearest", "cubic"}) {
            const Tensor grid = run_op("AffineGrid", {theta, ints({2, 3, 4, 5})},
                                       attributes({{"align_corners", corners}}))[0];
            const Attributes options = attributes({{"mode", std::string(kind)}, {"align_corners", corners}});
            testing::expect_near(run_op("GridSample", {x, grid}, options)[0], x, 1e-4);
        }
}

TEST(GridSample, PadsAsAsked) {
    const Tensor x = Tensor::of<float>({1, 1, 1, 3}, {1, 2, 3});
    const Tensor far = Tensor::of<float>({1, 1, 2, 2}, {-5, 0, std::nanf(""), 0});
    const auto sample = [&](const char* padding) {
        return run_op("GridSample", {x, far}, attributes({{"padding_mode", std::string(padding)}}))[0];
    };
    testing::expect_near(sample("zeros"), Tensor::of<float>({1, 1, 1, 2}, {0, 0}));
    testing::expect_near(sample("border"), Tensor::of<float>({1, 1, 1, 2}, {1, 1}));
    EXPECT_NO_THROW(sample("reflection"));
}

}  // namespace kilter::ops_resize_test
