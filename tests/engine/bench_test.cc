#include <gtest/gtest.h>

#include "kilter/base/error.h"
#include "kilter/engine/bench.h"

namespace kilter::bench_test {

const std::vector<Port> kBert{{"ids", {DType::i64, {Dim("batch"), Dim("sequence")}}},
                              {"mask", {DType::i64, {Dim("batch"), Dim("sequence")}}}};

Model relu_model() {
    Model model;
    model.opsets = {{"", kCanonicalOpset}};
    Value* x = model.graph.add_input("x", {DType::f32, {Dim("batch"), 4}});
    model.graph.add_output(model.graph.add("Relu", {x}), "y");
    return model;
}

TEST(ResolveShapes, BindsBatchAndNamedDimensions) {
    const std::vector<Shape> expected{{8, 128}, {8, 128}};
    EXPECT_EQ(resolve_shapes(kBert, {8, {{"sequence", {128}}}}), expected);
    EXPECT_EQ(resolve_shapes({{"x", {DType::f32, {Dim(), 3}}}}, {}), (std::vector<Shape>{{1, 3}}));
    EXPECT_EQ(resolve_shapes(kBert, {0, {{"ids", {2, 5}}, {"mask", {2, 5}}}}),
              (std::vector<Shape>{{2, 5}, {2, 5}}));
}

TEST(ResolveShapes, SaysWhatIsOpenOrContradicts) {
    EXPECT_THROW(resolve_shapes(kBert, {8, {}}), Error);
    EXPECT_THROW(resolve_shapes(kBert, {8, {{"sequence", {128}}, {"nothing", {1}}}}), Error);
    const std::vector<Port> fixed{{"x", {DType::f32, {1, 3}}}};
    EXPECT_THROW(resolve_shapes(fixed, {2, {}}), Error);
    EXPECT_THROW(resolve_shapes(fixed, {0, {{"x", {1, 4}}}}), Error);
    EXPECT_THROW(resolve_shapes({{"x", {}}}, {}), Error);
}

TEST(Bench, RunsAsOftenAsAsked) {
    const Program program(relu_model(), {.threads = 1});
    const auto shapes = resolve_shapes(program.inputs(), {3, {}});
    const BenchResult result =
        bench(program, made_up_inputs(program.inputs(), shapes), {.instances = 2, .iterations = 5});
    EXPECT_EQ(result.milliseconds.size(), 10U);
    EXPECT_LE(result.percentile(0), result.median());
    EXPECT_LE(result.median(), result.percentile(90));
}

TEST(Bench, ReportsWhatGoesWrongInAnInstance) {
    const Program program(relu_model(), {.threads = 1});
    const Tensor wrong = Tensor::filled(DType::f32, {1, 5}, 0);
    EXPECT_THROW(bench(program, {wrong}, {.instances = 2, .iterations = 3}), Error);
}

}  // namespace kilter::bench_test
