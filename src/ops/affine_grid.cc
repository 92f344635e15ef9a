// AffineGrid: the sampling grid (for GridSample) of an affine map of an image or a volume.
#include <array>

#include "base/fail.h"
#include "ops/numeric.h"
#include "ops/shape_data.h"

namespace kilter::affine_grid_op {

Dims grid_dims(const std::optional<Dims>& theta, const Dims& size) {
    require(size.size() == 4 || size.size() == 5,
            "size must be [N, C, H, W] or [N, C, D, H, W], found {} entries", size.size());
    const auto axes = static_cast<int64_t>(size.size()) - 2;
    require(!theta || (theta->size() == 3 && agree((*theta)[0], size[0]) && agree((*theta)[1], axes) &&
                       agree((*theta)[2], axes + 1)),
            "theta must have shape [{}, {}, {}], found {}", to_string(size[0]), axes, axes + 1,
            theta ? to_string(*theta) : "");
    Dims result{size[0]};
    result.insert(result.end(), size.begin() + 2, size.end());
    result.emplace_back(axes);
    return result;
}

void infer(InferContext& context) {
    if (const std::optional<Dims> size = context.shape_data(1)) {
        for (const Dim& entry : *size)
            require(entry_number(entry).value_or(0) >= 0, "size holds {}", to_string(entry));
        return context.set_output(0, context.dtype(0), grid_dims(context.shape(0), *size));
    }
    if (!context.shape(0) || context.rank(0) != 3 || !(*context.shape(0))[1].known())
        return context.set_output(0, context.dtype(0));
    // Without the size, theta still says how many axes there are.
    const Dims& theta = *context.shape(0);
    require(theta[1].value == 2 || theta[1].value == 3, "theta must have 2 or 3 rows, found {}",
            to_string(theta));
    Dims result(static_cast<size_t>(theta[1].value) + 2);
    result.front() = theta[0];
    result.back() = theta[1];
    context.set_output(0, context.dtype(0), std::move(result));
}

double base_coordinate(int64_t index, int64_t extent, bool align_corners) {
    const auto at = static_cast<double>(index);
    const auto count = static_cast<double>(extent);
    if (!align_corners) return (2 * at + 1) / count - 1;
    return extent == 1 ? -1.0 : 2 * at / (count - 1) - 1;
}

void kernel(KernelContext& context) {
    const Tensor& input = needed(context, 0, "theta");
    require_real(input.dtype(), "theta");
    const Tensor theta = to_reals(input);
    const std::vector<int64_t> size = needed(context, 1, "size").to_ints();
    const Dims dims = grid_dims(to_dims(theta.shape()), to_dims(size));
    for (const int64_t extent : size) require(extent >= 0, "size holds {}", extent);
    Tensor grid = real_zeros(ValueType(DType::f64, dims).static_shape());
    const bool align_corners = context.attributes().get_int("align_corners") != 0;
    const size_t axes = size.size() - 2;
    const int64_t points = grid.size() == 0 ? 0 : extent(size, 2, size.size());
    double* target = grid.as_mutable<double>().data();
    for (int64_t image = 0; image < size[0] && points > 0; ++image)
        for (int64_t point = 0; point < points; ++point) {
            std::array<double, 4> position{};  // (x, y, …, 1): the last axis first
            int64_t rest = point;
            for (size_t i = 0; i < axes; ++i) {
                const int64_t extent = size[size.size() - 1 - i];
                position[i] = base_coordinate(rest % extent, extent, align_corners);
                rest /= extent;
            }
            position[axes] = 1;
            for (size_t row = 0; row < axes; ++row) {
                const double* line =
                    theta.as<double>().data() + (static_cast<size_t>(image) * axes + row) * (axes + 1);
                double sum = 0;
                for (size_t i = 0; i <= axes; ++i) sum += line[i] * position[i];
                *target++ = sum;
            }
        }
    store_reals(context, 0, input.dtype(), grid);
}

KILTER_OP({.name = "AffineGrid",
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{"align_corners", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::affine_grid_op
