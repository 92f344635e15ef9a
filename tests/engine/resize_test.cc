// Resize of the engine against the reference kernel: every mode, coordinate rule and layout.
#include "engine/testing.h"

namespace kilter::engine::testing::engine_resize_test {

Tensor scales(const std::vector<float>& values) {
    return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(EngineResize, ModesAndCoordinates) {
    for (const char* mode : {"nearest", "linear", "cubic"})
        for (const char* rule :
             {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"})
            for (const std::vector<float>& factors : {std::vector<float>{1, 1, 2, 2},
                                                      {1, 1, 0.6F, 1.7F},
                                                      {1, 1, 3, 0.5F},
                                                      {1, 1, 1, 2.3F},
                                                      {1, 2, 1, 1}}) {
                SCOPED_TRACE(std::string(mode) + " " + rule + " " + std::to_string(factors[2]) + " " +
                             std::to_string(factors[3]));
                const auto finish = [&](OpTest& test) {
                    test.absent()
                        .constant(scales(factors))
                        .attribute("mode", std::string(mode))
                        .attribute("coordinate_transformation_mode", std::string(rule))
                        .check();
                };
                OpTest plain("Resize");
                finish(plain.input(random(DType::f32, {2, 3, 7, 33}, 1)));
                OpTest convolved("Resize");
                finish(convolved.convolved(random(DType::f32, {2, 17, 7, 9}, 1)));
                OpTest transposed("Resize");
                finish(transposed.transposed(random(DType::f32, {2, 3, 7, 9}, 1)));
            }
}

TEST(EngineResize, NearestOfEveryType) {
    for (const DType dtype : {DType::u8, DType::i64, DType::boolean, DType::f16})
        for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
            OpTest("Resize")
                .input(random(dtype, {1, 3, 5, 7}, 1))
                .absent()
                .constant(scales({1, 1, 1.5F, 2.5F}))
                .attribute("nearest_mode", std::string(nearest))
                .check();
}

TEST(EngineResize, SizesAxesAndOtherRanks) {
    OpTest("Resize")
        .input(random(DType::f32, {2, 3, 7, 9}, 1))
        .absent()
        .absent()
        .constant(ints({2, 3, 11, 5}))
        .attribute("mode", std::string("linear"))
        .check();
    OpTest("Resize")
        .input(random(DType::f32, {2, 3, 7, 9}, 1))
        .absent()
        .absent()
        .constant(ints({11, 5}))
        .attribute("axes", std::vector<int64_t>{2, 3})
        .attribute("mode", std::string("cubic"))
        .check();
    OpTest("Resize")
        .input(random(DType::f32, {2, 3, 9}, 1))
        .absent()
        .constant(scales({1, 1, 2}))
        .attribute("mode", std::string("linear"))
        .check();
    OpTest("Resize")
        .input(random(DType::f32, {1, 2, 3, 4, 5}, 1))
        .absent()
        .constant(scales({1, 1, 2, 2, 2}))
        .attribute("mode", std::string("linear"))
        .check();
    OpTest("Resize")
        .input(random(DType::f32, {1, 3, 16, 16}, 1))
        .absent()
        .constant(scales({1, 1, 0.5F, 0.5F}))
        .attribute("mode", std::string("linear"))
        .attribute("antialias", int64_t{1})
        .check();
    OpTest("Resize")
        .input(random(DType::f32, {1, 3, 8, 8}, 1))
        .absent()
        .constant(scales({1, 1, 1, 1}))
        .check();
}

}  // namespace kilter::engine::testing::engine_resize_test
