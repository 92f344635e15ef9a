#include "engine/native/q_product.h"

#include <omp.h>

#include <algorithm>

#include <fmt/format.h>

#include "engine/native/q_sums.h"
#include "engine/native/q_tile.h"
#include "engine/native/vnni.h"

namespace kilter::engine {
namespace {

// A panel is read once for every eight rows, and the rows once for every panel: both must stay in a core's second cache.
constexpr int64_t kMostPanelBytes = 1 << 19;
constexpr int64_t kMostRowBytes = 1 << 19;
constexpr int64_t kParallelWork = 1 << 18;  // multiplications that are worth waking other threads

struct Panel {
    int64_t first, columns, vectors, offset;
};

struct Product {
    int64_t rows, depth, columns;
    int32_t zero_point;
    std::vector<Panel> panels;
    std::vector<SumStep> steps;
    ResultType type;
};

std::vector<Panel> panels_of(int64_t columns, int64_t depth) {
    std::vector<Panel> panels;
    int64_t first = 0;
    int64_t offset = 0;
    for (const int64_t vectors : panel_widths(columns)) {
        panels.push_back({first, std::min(vectors * kLanes, columns - first), vectors, offset});
        first += vectors * kLanes;
        offset += panel_bytes(depth, vectors);
    }
    return panels;
}

struct Addresses {
    const uint8_t* a;
    const char* packed;
    const float *scales, *bias;
    std::array<const char*, kMostSteps> operand;
    char* result;
};

void multiply_block(const Product& product, const Addresses& at, const Panel& panel, int64_t first,
                    int64_t last) {
    alignas(64) int32_t sums[kTileRows * kTileColumns];  // NOLINT: scratch
    multiply_tile(at.a + first * product.depth, product.depth, last - first, at.packed + panel.offset,
                  panel.vectors, product.depth, product.zero_point, sums);
    const int64_t element = first * product.columns + panel.first;
    SumTile tile{sums,
                 last - first,
                 panel.columns,
                 product.columns,
                 at.scales + panel.first,
                 at.bias == nullptr ? nullptr : at.bias + panel.first,
                 {},
                 at.result + element * (product.type.dtype == DType::f32 ? 4 : 1)};
    for (size_t i = 0; i < product.steps.size(); ++i)
        if (product.steps[i].input >= 0)
            tile.operand[i] =
                at.operand[i] + element * (product.steps[i].kind == SumStep::Kind::add_f32 ? 4 : 1);
    store_sums(product.steps, product.type, panel.vectors, tile);
}

// Every thread takes the same share of blocks, panel after panel: mostly panels of its own, so that no two cores read the same
// weights.
void multiply(const Product& product, const Addresses& at) {
    const int64_t rows = product.rows;
    const int64_t chunks = std::max<int64_t>(1, (rows * product.depth + kMostRowBytes - 1) / kMostRowBytes);
    const bool large = rows * product.depth * product.columns >= kParallelWork;
    const int threads = large ? omp_get_max_threads() : 1;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const int64_t team = omp_get_num_threads();
        const int64_t self = omp_get_thread_num();
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            const int64_t start = rows * chunk / chunks;
            const int64_t count = rows * (chunk + 1) / chunks - start;
            const int64_t blocks = (count + kTileRows - 1) / kTileRows;
            const int64_t units = blocks * static_cast<int64_t>(product.panels.size());
            for (int64_t unit = units * self / team; unit < units * (self + 1) / team; ++unit) {
                const int64_t block = unit % blocks;
                multiply_block(product, at, product.panels[static_cast<size_t>(unit / blocks)],
                               start + count * block / blocks, start + count * (block + 1) / blocks);
            }
        }
    }
}

// One number per column, whole vectors of them.
Tensor padded(std::span<const float> numbers, int64_t columns) {
    Tensor result = Tensor::filled(DType::f32, {(columns + kLanes - 1) / kLanes * kLanes}, 0.0);
    for (int64_t i = 0; i < columns; ++i)
        result.as_mutable<float>()[static_cast<size_t>(i)] =
            numbers[numbers.size() == 1 ? 0 : static_cast<size_t>(i)];
    return result;
}

// The result goes where a float residual is that nobody reads again: it is in the cache already.
Array result_array(Builder& builder, const Node& node, const std::vector<SumStep>& steps) {
    const Value* y = node.output(0);
    for (const SumStep& step : steps) {
        if (step.kind != SumStep::Kind::add_f32 || builder.dtype(y) != DType::f32) continue;
        const Array operand = builder.dense(node.input(static_cast<size_t>(step.input)));
        const auto shared = [&](const Value* value) {
            return value != nullptr && value != node.input(static_cast<size_t>(step.input)) &&
                   builder.shares_buffer(value, operand);
        };
        if (!builder.dies_here(operand) || std::ranges::any_of(node.inputs(), shared)) continue;
        builder.alias(y, operand);
        return operand;
    }
    return builder.dense_result(y);
}

}  // namespace

bool build_q_product(Builder& builder, const Node& node) {
    const Tensor* weights = builder.constant(node.input(1));
    const Value* bias = node.input(2);
    const Attributes& given = node.attributes;
    if (!has_vnni() || has_amx() || weights == nullptr || weights->dtype() != DType::i8 ||
        weights->rank() != 2 || builder.dtype(node.input(0)) != DType::u8 || given.get_int("trans_a") != 0 ||
        given.get_int("b_zero_point") != 0 || (bias != nullptr && builder.constant(bias) == nullptr))
        return false;
    const Shape& y_shape = builder.shape(node.output(0));
    const bool trans_b = given.get_int("trans_b") != 0;
    const int64_t columns = y_shape.back();
    const int64_t depth = weights->dim(trans_b ? 1 : 0);
    const int64_t rows = element_count(y_shape) / columns;
    if (depth % 4 != 0 || panel_bytes(depth, kTileVectors) > kMostPanelBytes) return false;
    std::vector<DType> dtypes;
    for (const Value* value : node.inputs())
        dtypes.push_back(value == nullptr ? DType::undefined : builder.dtype(value));
    const auto steps = sum_steps(float_tail(node), dtypes);
    if (!steps) return false;
    for (const SumStep& step : *steps)
        if (step.input >= 0 && builder.shape(node.input(static_cast<size_t>(step.input))) != y_shape)
            return false;

    const Product product{rows,
                          depth,
                          columns,
                          static_cast<int32_t>(given.get_int("a_zero_point")),
                          panels_of(columns, depth),
                          *steps,
                          result_type(given)};
    const Panel& end = product.panels.back();
    const int64_t bytes = end.offset + panel_bytes(depth, end.vectors);
    const Array packed = builder.derived(
        *weights, fmt::format("panels{}", trans_b ? ":transposed" : ""), DType::u8, {bytes}, [&](void* to) {
            for (const Panel& panel : product.panels)
                pack_panel(weights->as<int8_t>().data(), trans_b ? 1 : columns, trans_b ? depth : 1, depth,
                           panel.first, columns, panel.vectors, static_cast<char*>(to) + panel.offset);
        });
    const Array a = builder.dense(node.input(0));
    const std::vector<float> products =
        scale_products(given.get_float("a_scale", 1.0F), given.get_floats("b_scale", {1.0F}));
    const Array scales = builder.constant_array(padded(products, columns));
    std::vector<Array> reads{a, packed, scales};
    Array biases;
    if (bias != nullptr) {
        biases = builder.constant_array(padded(builder.constant(bias)->as<float>(), columns));
        reads.push_back(biases);
    }
    std::array<Array, kMostSteps> operands;
    for (size_t i = 0; i < steps->size(); ++i) {
        if ((*steps)[i].input < 0) continue;
        operands[i] = builder.dense(node.input(static_cast<size_t>((*steps)[i].input)));
        reads.push_back(operands[i]);
    }
    const Array result = result_array(builder, node, *steps);
    builder.add_native("panels:avx512_vnni", reads, {result}, [=](Execution& execution) {
        Addresses at{reinterpret_cast<const uint8_t*>(execution.address(a)),
                     execution.address(packed),
                     reinterpret_cast<const float*>(execution.address(scales)),
                     biases.valid() ? reinterpret_cast<const float*>(execution.address(biases)) : nullptr,
                     {},
                     execution.address(result)};
        for (size_t i = 0; i < operands.size(); ++i)
            if (operands[i].valid()) at.operand[i] = execution.address(operands[i]);
        multiply(product, at);
    });
    return true;
}

}  // namespace kilter::engine
