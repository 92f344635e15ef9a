// Col2Im: adds the columns of sliding blocks back into an image, the inverse of cutting it up; any number
// of spatial axes.
#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::col2im_op {

struct Geometry {
    Shape image, block, strides, dilations, begins;
    Shape steps;  // blocks along each axis
};

Geometry geometry_of(const Attributes& attributes, const std::vector<int64_t>& image,
                     const std::vector<int64_t>& block) {
    const size_t axes = image.size();
    Geometry geometry{image,
                      block,
                      attributes.get_ints("strides", Shape(axes, 1)),
                      attributes.get_ints("dilations", Shape(axes, 1)),
                      attributes.get_ints("pads", Shape(2 * axes, 0)),
                      {}};
    require(block.size() == axes && geometry.strides.size() == axes && geometry.dilations.size() == axes &&
                geometry.begins.size() == 2 * axes,
            "image_shape, block_shape, strides, dilations and pads do not fit together");
    constexpr int64_t kLargest = int64_t{1} << 31;
    for (size_t i = 0; i < axes; ++i) {
        for (const int64_t number : {image[i], block[i], geometry.strides[i], geometry.dilations[i]})
            require(number > 0 && number < kLargest, "{} is out of range for a size, stride or dilation",
                    number);
        for (const int64_t pad : {geometry.begins[i], geometry.begins[i + axes]})
            require(pad >= 0 && pad < kLargest, "pad {} is out of range", pad);
        const int64_t span = image[i] + geometry.begins[i] + geometry.begins[i + axes] -
                             geometry.dilations[i] * (block[i] - 1) - 1;
        require(span >= 0, "a block of {} does not fit an image of {}", block[i], image[i]);
        geometry.steps.push_back(span / geometry.strides[i] + 1);
    }
    geometry.begins.resize(axes);
    return geometry;
}

void infer(InferContext& context) {
    const auto image = context.ints(1);
    const auto block = context.ints(2);
    if (!image || !block || !context.shape(0)) return context.set_output(0, context.dtype(0));
    const Dims& x = *context.shape(0);
    require(x.size() == 3, "expected columns of rank 3, found {}", to_string(x));
    geometry_of(context.attributes(), *image, *block);
    const int64_t taps = element_count(*block);
    Dims shape{x[0], x[1].known() ? Dim(x[1].value / taps) : Dim()};
    shape.insert(shape.end(), image->begin(), image->end());
    context.set_output(0, context.dtype(0), std::move(shape));
}

// Moves to the next position; false after the last.
bool advance(Shape& position, const Shape& shape) {
    for (size_t i = position.size(); i-- > 0;) {
        if (++position[i] < shape[i]) return true;
        position[i] = 0;
    }
    return false;
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Geometry geometry =
        geometry_of(context.attributes(), context.input(1).to_ints(), context.input(2).to_ints());
    const int64_t taps = element_count(geometry.block);
    const int64_t blocks = element_count(geometry.steps);
    require(x.rank() == 3 && x.dim(1) % taps == 0 && x.dim(2) == blocks,
            "columns of {} do not fit {} taps and {} blocks", to_string(x.shape()), taps, blocks);
    Shape shape{x.dim(0), x.dim(1) / taps};
    shape.insert(shape.end(), geometry.image.begin(), geometry.image.end());
    require_reasonable_size(DType::f64, shape);
    std::vector<double> sums(static_cast<size_t>(element_count(shape)), 0.0);
    const Shape strides = row_major_strides(geometry.image);
    const int64_t pixels = element_count(geometry.image);
    int64_t column = 0;
    for (int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
        Shape tap(geometry.block.size(), 0);
        do {
            Shape step(tap.size(), 0);
            do {
                int64_t offset = 0;
                bool inside = true;
                for (size_t i = 0; i < tap.size(); ++i) {
                    const int64_t at =
                        step[i] * geometry.strides[i] - geometry.begins[i] + tap[i] * geometry.dilations[i];
                    inside = inside && at >= 0 && at < geometry.image[i];
                    offset += at * strides[i];
                }
                if (inside)
                    sums[static_cast<size_t>(plane * pixels + offset)] +=
                        load_double(x.dtype(), x.raw(), column);
                ++column;
            } while (advance(step, geometry.steps));
        } while (advance(tap, geometry.block));
    }
    Tensor& y = context.output(0, x.dtype(), shape);
    for (int64_t i = 0; i < y.size(); ++i)
        store_double(y.dtype(), y.raw_mutable(), i, sums[static_cast<size_t>(i)]);
}

KILTER_OP({.name = "Col2Im",
           .min_inputs = 3,
           .max_inputs = 3,
           .attributes = {{"dilations", AttributeKind::integers},
                          {"pads", AttributeKind::integers},
                          {"strides", AttributeKind::integers}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::col2im_op
