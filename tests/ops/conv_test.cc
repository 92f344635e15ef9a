#include "ops/run_op.h"

namespace kilter::conv_test {

using testing::attributes;
using testing::error_of;
using testing::infer_op;
using testing::random_tensor;
using testing::run_op;
using Ints = std::vector<int64_t>;

struct ConvShape {
    int64_t batch, inputs, outputs, groups;  // channels in all
    Ints image, kernel, strides, dilations, pads;
};

std::vector<ConvShape> odd_conv_shapes() {
    return {{1, 1, 1, 1, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
            {2, 3, 5, 1, {7, 4}, {3, 2}, {2, 1}, {1, 2}, {1, 0, 2, 1}},
            {1, 6, 4, 2, {6, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
            {3, 4, 8, 4, {9, 5}, {2, 5}, {3, 2}, {2, 1}, {0, 3, 1, 2}},
            {1, 2, 3, 1, {4, 4}, {1, 1}, {3, 2}, {1, 1}, {1, 1, 0, 0}}};
}

Attributes conv_attributes(const ConvShape& s) {
    return attributes(
        {{"group", s.groups}, {"strides", s.strides}, {"dilations", s.dilations}, {"pads", s.pads}});
}

float at(const Tensor& tensor, const Ints& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < index.size(); ++i) offset = offset * tensor.shape()[i] + index[i];
    return tensor.as<float>()[static_cast<size_t>(offset)];
}

// The definition, element by element: what lies outside the image is zero.
Tensor direct_conv(const ConvShape& s, const Tensor& x, const Tensor& w, const Tensor& b) {
    const auto extent = [&](size_t axis) {
        const int64_t reach = (s.kernel[axis] - 1) * s.dilations[axis] + 1;
        return (s.image[axis] + s.pads[axis] + s.pads[axis + 2] - reach) / s.strides[axis] + 1;
    };
    Tensor y(DType::f32, {s.batch, s.outputs, extent(0), extent(1)});
    float* target = y.as_mutable<float>().data();
    for (int64_t n = 0; n < s.batch; ++n)
        for (int64_t m = 0; m < s.outputs; ++m)
            for (int64_t i = 0; i < extent(0); ++i)
                for (int64_t j = 0; j < extent(1); ++j) {
                    double sum = b.as<float>()[static_cast<size_t>(m)];
                    const int64_t per_group = s.inputs / s.groups;
                    for (int64_t c = 0; c < per_group; ++c)
                        for (int64_t u = 0; u < s.kernel[0]; ++u)
                            for (int64_t v = 0; v < s.kernel[1]; ++v) {
                                const int64_t row = i * s.strides[0] + u * s.dilations[0] - s.pads[0];
                                const int64_t column = j * s.strides[1] + v * s.dilations[1] - s.pads[1];
                                if (row < 0 || column < 0 || row >= s.image[0] || column >= s.image[1])
                                    continue;
                                const int64_t channel = m / (s.outputs / s.groups) * per_group + c;
                                sum += at(x, {n, channel, row, column}) * at(w, {m, c, u, v});
                            }
                    *target++ = static_cast<float>(sum);
                }
    return y;
}

TEST(Conv, FollowsItsDefinitionOverOddShapes) {
    for (const ConvShape& s : odd_conv_shapes()) {
        const Tensor x = random_tensor({s.batch, s.inputs, s.image[0], s.image[1]}, 1);
        const Tensor w = random_tensor({s.outputs, s.inputs / s.groups, s.kernel[0], s.kernel[1]}, 2);
        const Tensor b = random_tensor({s.outputs}, 3);
        testing::expect_near(run_op("Conv", {x, w, b}, conv_attributes(s))[0], direct_conv(s, x, w, b));
    }
}

TEST(Conv, TreatsLinesAndVolumesLikeImages) {
    const Tensor x = random_tensor({2, 3, 9}, 1);
    const Tensor w = random_tensor({4, 3, 3}, 2);
    const Tensor line = run_op("Conv", {x, w}, attributes({{"pads", Ints{1, 2}}, {"strides", Ints{2}}}))[0];
    const Tensor image = run_op("Conv", {x.reshaped({2, 3, 1, 9}), w.reshaped({4, 3, 1, 3})},
                                attributes({{"pads", Ints{0, 1, 0, 2}}, {"strides", Ints{1, 2}}}))[0];
    const Tensor volume =
        run_op("Conv", {x.reshaped({2, 3, 1, 9, 1}), w.reshaped({4, 3, 1, 3, 1})},
               attributes({{"pads", Ints{0, 1, 0, 0, 2, 0}}, {"strides", Ints{1, 2, 1}}}))[0];
    testing::expect_near(image, line.reshaped(image.shape()));
    testing::expect_near(volume, line.reshaped(volume.shape()));
}

// <conv(x), y> = <x, conv_transpose(y)>: what "transposed" means.
TEST(ConvTranspose, IsTheAdjointOfConv) {
    for (const ConvShape& s : odd_conv_shapes()) {
        const Tensor x = random_tensor({s.batch, s.inputs, s.image[0], s.image[1]}, 1);
        const Tensor w = random_tensor({s.outputs, s.inputs / s.groups, s.kernel[0], s.kernel[1]}, 2);
        const Tensor forward = run_op("Conv", {x, w}, conv_attributes(s))[0];
        const Tensor y = random_tensor(forward.shape(), 3);
        Attributes transposed = conv_attributes(s);
        Ints extra;  // what the strides cut off at the end
        for (size_t axis = 0; axis < 2; ++axis) {
            const int64_t reach = (s.kernel[axis] - 1) * s.dilations[axis] + 1;
            extra.push_back((s.image[axis] + s.pads[axis] + s.pads[axis + 2] - reach) % s.strides[axis]);
        }
        transposed.set("output_padding", extra);
        const Tensor back = run_op("ConvTranspose", {y, w}, transposed)[0];
        ASSERT_EQ(back.shape(), x.shape());
        double left = 0, right = 0;
        for (size_t i = 0; i < static_cast<size_t>(y.size()); ++i)
            left += forward.as<float>()[i] * y.as<float>()[i];
        for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i)
            right += back.as<float>()[i] * x.as<float>()[i];
        EXPECT_NEAR(left, right, 1e-4 * std::max(1.0, std::fabs(left)));
    }
}

TEST(ConvTranspose, HonoursOutputShapeAndSamePadding) {
    const Tensor x = random_tensor({1, 1, 3, 3}, 1);
    const Tensor w = random_tensor({1, 2, 3, 3}, 2);
    const Attributes sized = attributes({{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}});
    EXPECT_EQ(run_op("ConvTranspose", {x, w}, sized)[0].shape(), (Shape{1, 2, 10, 8}));
    const Attributes same = attributes({{"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}});
    EXPECT_EQ(run_op("ConvTranspose", {x, w}, same)[0].shape(), (Shape{1, 2, 6, 6}));
}

TEST(Conv, KeepsSymbolicDimensionsWhereItCan) {
    const ValueType x{DType::f32, {Dim("batch"), 3, Dim("height"), 8}};
    const ValueType w{DType::f32, {4, 3, 3, 3}};
    EXPECT_EQ(to_string(infer_op("Conv", {x, w}, attributes({{"pads", Ints{1, 1, 1, 1}}}))),
              "f32[batch, 4, height, 8]");
    EXPECT_EQ(to_string(infer_op("Conv", {x, w}, attributes({{"strides", Ints{2, 2}}}))),
              "f32[batch, 4, ?, 3]");
    EXPECT_EQ(to_string(infer_op("Conv", {x, w}, attributes({{"auto_pad", std::string("SAME_LOWER")}}))),
              "f32[batch, 4, height, 8]");
}

TEST(Conv, SaysWhatDoesNotFit) {
    const ValueType x{DType::f32, {1, 4, 5, 5}};
    const ValueType w{DType::f32, {2, 3, 3, 3}};
    EXPECT_EQ(error_of([&] {
                  infer_op("Conv", {x, w});
              }),
              "operator 'node' (Conv): weights have 3 input channels but the input has 4");
    EXPECT_EQ(
        error_of([&] {
            infer_op("Conv", {x, {DType::f32, {2, 4, 7, 3}}});
        }),
        "operator 'node' (Conv): a kernel of extent 7 does not fit the input of extent 5 (with padding) along "
        "spatial axis 0");
    EXPECT_NE(error_of([&] {
                  infer_op("Conv", {x, {DType::f16, {2, 4, 3, 3}}});
              }).find("must be f32"),
              std::string::npos);
    EXPECT_NE(error_of([&] {
                  infer_op("Conv", {x, {DType::f32, {2, 4, 3, 3}}, {DType::f32, {3}}});
              }).find("the bias must have shape [2], found [3]"),
              std::string::npos);
}

TEST(Conv, RejectsHostileAttributes) {
    const ValueType x{DType::f32, {1, 1, 8, 8}};
    const ValueType w{DType::f32, {1, 1, 3, 3}};
    constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
    for (const Attributes& hostile :
         {attributes({{"strides", Ints{0, 1}}}), attributes({{"strides", Ints{1}}}),
          attributes({{"pads", Ints{-1, 0, 0, 0}}}), attributes({{"pads", Ints{kHuge, 0, 0, kHuge}}}),
          attributes({{"dilations", Ints{kHuge, 1}}}), attributes({{"dilations", Ints{1, -4}}}),
          attributes({{"group", int64_t{0}}}), attributes({{"group", kHuge}}),
          attributes({{"kernel_shape", Ints{3, 2}}}), attributes({{"auto_pad", std::string("SAME")}}),
          attributes({{"strides", std::string("2")}})}) {
        EXPECT_THROW(infer_op("Conv", {x, w}, hostile), Error);
        EXPECT_THROW(
            run_op("Conv", {random_tensor({1, 1, 8, 8}, 1), random_tensor({1, 1, 3, 3}, 2)}, hostile), Error);
    }
}

TEST(ConvInteger, SubtractsZeroPointsBeforePadding) {
    const Tensor x = Tensor::of<uint8_t>({1, 1, 1, 2}, {5, 7});
    const Tensor w = Tensor::of<int8_t>({1, 1, 1, 2}, {1, 2});
    const Tensor zero = Tensor::scalar<uint8_t>(3);
    const Tensor y = run_op("ConvInteger", {x, w, zero}, attributes({{"pads", Ints{0, 1, 0, 1}}}))[0];
    EXPECT_EQ(y.to_ints(), (Ints{4, 10, 4}));  // 2*2, 2*1 + 4*2, 4*1
}

TEST(QLinearConv, RoundsHalfToEvenAndSaturates) {
    const Tensor x = Tensor::of<uint8_t>({1, 1, 1, 4}, {1, 3, 200, 0});
    const Tensor w = Tensor::of<int8_t>({1, 1, 1, 1}, {1});
    const Tensor one = Tensor::scalar<float>(1), two = Tensor::scalar<float>(2),
                 half = Tensor::scalar<float>(0.5F);
    const Tensor zero = Tensor::scalar<uint8_t>(0), weight_zero = Tensor::scalar<int8_t>(0);
    const Tensor offset = Tensor::scalar<uint8_t>(10);
    EXPECT_EQ(run_op("QLinearConv", {x, one, zero, w, one, weight_zero, two, offset})[0].to_ints(),
              (Ints{10, 12, 110, 10}));
    EXPECT_EQ(run_op("QLinearConv", {x, one, zero, w, one, weight_zero, half, offset})[0].to_ints(),
              (Ints{12, 16, 255, 10}));
}

}  // namespace kilter::conv_test
