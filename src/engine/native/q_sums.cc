#include "engine/native/q_sums.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "engine/native/bytes_inline.h"
#include "engine/native/q_tile.h"
#include "engine/native/vnni.h"

// _mm512_max_ps and others draw false warnings from GCC 12 (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace kilter::engine {
namespace {

// GELU(x) = x/2 + |x|·h(|x|), where h(a) = Φ(a) - 1/2 is a polynomial of degree 4 around each of 16 points. A register holds one
// coefficient of all points, so finding it is one permutation: half the work of an exponential function and a division.
// The polynomials are at most 1.6e-7 off; from 5.5 on h is 1/2 to within 2e-8.
constexpr int kPoints = 16;
constexpr int kDegree = 4;
constexpr double kWidth = 5.5 / (kPoints - 1.5);

struct GeluTable {
    alignas(64) std::array<std::array<float, kPoints>, kDegree + 1> coefficients{};

    // Newton's divided differences through Chebyshev's nodes of [-1/2, 1/2], multiplied out.
    GeluTable() {
        constexpr size_t kNodes = kDegree + 1;
        for (size_t point = 0; point + 1 < kPoints; ++point) {
            std::array<double, kNodes> at{};
            std::array<double, kNodes> difference{};
            for (size_t i = 0; i < kNodes; ++i) {
                at[i] = -0.5 * std::cos(M_PI * (static_cast<double>(i) + 0.5) / kNodes);
                difference[i] = 0.5 * std::erf((static_cast<double>(point) + at[i]) * kWidth * M_SQRT1_2);
            }
            for (size_t order = 1; order < kNodes; ++order)
                for (size_t i = kNodes - 1; i >= order; --i)
                    difference[i] = (difference[i] - difference[i - 1]) / (at[i] - at[i - order]);
            std::array<double, kNodes> polynomial{};
            for (size_t i = kNodes; i-- > 0;) {
                for (size_t power = kNodes - 1; power > 0; --power)
                    polynomial[power] = polynomial[power - 1] - at[i] * polynomial[power];
                polynomial[0] = difference[i] - at[i] * polynomial[0];
            }
            for (size_t power = 0; power < kNodes; ++power)
                coefficients[power][point] = static_cast<float>(polynomial[power]);
        }
        coefficients[0][kPoints - 1] = 0.5F;
    }
};

const GeluTable& gelu_table() {
    static const GeluTable table;
    return table;
}

// The vectors of one row go through every operation together: one alone would wait for itself.
template <int kVectors>
struct Row {
    __m512 t[kVectors];  // NOLINT: registers
};

#define KILTER_ROW _Pragma("GCC unroll 3") for (int v = 0; v < kVectors; ++v)

template <int kVectors>
KILTER_VNNI_INLINE void gelu(Row<kVectors>& x, const __m512* coefficients) {
    const __m512 inverse_width = _mm512_set1_ps(static_cast<float>(1.0 / kWidth));
    const __m512 farthest = _mm512_set1_ps(static_cast<float>(kWidth * (kPoints - 1)));
    const __m512 shift = _mm512_set1_ps(kRoundingShift);
    Row<kVectors> size;
    Row<kVectors> rest;
    Row<kVectors> h;
    __m512i point[kVectors];  // NOLINT: registers
    KILTER_ROW size.t[v] = _mm512_abs_ps(x.t[v]);
    KILTER_ROW rest.t[v] = _mm512_min_ps(size.t[v], farthest);
    // The integer is in the low bits after the shift, and the permutations look at nothing else.
    KILTER_ROW h.t[v] = _mm512_fmadd_ps(rest.t[v], inverse_width, shift);
    KILTER_ROW point[v] = _mm512_castps_si512(h.t[v]);
    KILTER_ROW rest.t[v] = _mm512_fmsub_ps(rest.t[v], inverse_width, _mm512_sub_ps(h.t[v], shift));
    KILTER_ROW h.t[v] = _mm512_permutexvar_ps(point[v], coefficients[kDegree]);
#pragma GCC unroll 4
    for (int power = kDegree - 1; power >= 0; --power)
        KILTER_ROW h.t[v] =
            _mm512_fmadd_ps(h.t[v], rest.t[v], _mm512_permutexvar_ps(point[v], coefficients[power]));
    KILTER_ROW x.t[v] = _mm512_fmadd_ps(size.t[v], h.t[v], _mm512_mul_ps(x.t[v], _mm512_set1_ps(0.5F)));
}

// A step with its parameters in registers.
struct Step {
    __m512 alpha, beta;
    __m512 coefficients[kDegree + 1];  // NOLINT: registers

    KILTER_VNNI __attribute__((always_inline)) explicit Step(const SumStep& step)
        : alpha(_mm512_set1_ps(step.alpha)), beta(_mm512_set1_ps(step.beta)) {
        if (step.kind != SumStep::Kind::gelu) return;
        for (size_t i = 0; i <= kDegree; ++i)
            coefficients[i] = _mm512_load_ps(gelu_table().coefficients[i].data());
    }
};

template <int kVectors>
KILTER_VNNI_INLINE void apply(SumStep::Kind kind, const Step& step, const char* operand,
                              const __mmask16* masks, Row<kVectors>& row) {
    __m512(&t)[kVectors] = row.t;
    switch (kind) {
        case SumStep::Kind::add_u8:
        case SumStep::Kind::add_i8:
            KILTER_ROW {
                const __m128i bytes = _mm_maskz_loadu_epi8(masks[v], operand + v * kLanes);
                const __m512i wide =
                    kind == SumStep::Kind::add_u8 ? _mm512_cvtepu8_epi32(bytes) : _mm512_cvtepi8_epi32(bytes);
                t[v] = _mm512_fmadd_ps(_mm512_sub_ps(_mm512_cvtepi32_ps(wide), step.beta), step.alpha, t[v]);
            }
            return;
        case SumStep::Kind::add_f32:
            KILTER_ROW t[v] = _mm512_add_ps(t[v], _mm512_maskz_loadu_ps(masks[v], operand + v * kLanes * 4));
            return;
        case SumStep::Kind::relu:
            KILTER_ROW t[v] = _mm512_max_ps(t[v], _mm512_setzero_ps());
            return;
        case SumStep::Kind::clip:
            KILTER_ROW t[v] = _mm512_min_ps(_mm512_max_ps(t[v], step.alpha), step.beta);
            return;
        case SumStep::Kind::linear:
            KILTER_ROW t[v] = _mm512_fmadd_ps(t[v], step.alpha, step.beta);
            return;
        case SumStep::Kind::gelu:
            return gelu(row, step.coefficients);
    }
}

constexpr int64_t operand_bytes(SumStep::Kind kind) { return kind == SumStep::Kind::add_f32 ? 4 : 1; }

// No step, one whose kind the compiler knows, or any number of them.
struct NoSteps {
    KILTER_VNNI_INLINE NoSteps make(const std::vector<SumStep>&, const SumTile&) { return {}; }
    template <int kVectors>
    KILTER_VNNI __attribute__((always_inline)) void operator()(Row<kVectors>&, int64_t,
                                                               const __mmask16*) const {}
};

template <SumStep::Kind kKind>
struct OneStep {
    Step step;
    const char* operand;
    KILTER_VNNI_INLINE OneStep make(const std::vector<SumStep>& steps, const SumTile& tile) {
        return {Step(steps.front()), tile.operand.front()};
    }
    template <int kVectors>
    KILTER_VNNI __attribute__((always_inline)) void operator()(Row<kVectors>& row, int64_t element,
                                                               const __mmask16* masks) const {
        apply(kKind, step, operand + element * operand_bytes(kKind), masks, row);
    }
};

struct ManySteps {
    const std::vector<SumStep>& steps;
    const SumTile& tile;
    KILTER_VNNI_INLINE ManySteps make(const std::vector<SumStep>& steps, const SumTile& tile) {
        return {steps, tile};
    }
    template <int kVectors>
    KILTER_VNNI __attribute__((always_inline)) void operator()(Row<kVectors>& row, int64_t element,
                                                               const __mmask16* masks) const {
        for (size_t i = 0; i < steps.size(); ++i)
            apply(steps[i].kind, Step(steps[i]), tile.operand[i] + element * operand_bytes(steps[i].kind),
                  masks, row);
    }
};

template <int kVectors>
KILTER_VNNI_INLINE void store_floats(const Row<kVectors>& row, bool whole, const __mmask16* masks, char* to) {
    if (whole)
        KILTER_ROW _mm512_storeu_ps(to + v * kLanes * 4, row.t[v]);
    else
        KILTER_ROW _mm512_mask_storeu_ps(to + v * kLanes * 4, masks[v], row.t[v]);
}

struct Rounding {
    __m512 inverse_scale, zero_point, low, high;
};

template <int kVectors>
KILTER_VNNI_INLINE void store_bytes(Row<kVectors>& row, const Rounding& by, bool whole,
                                    const __mmask16* masks, char* to) {
    __m512(&t)[kVectors] = row.t;
    __m128i bytes[kVectors];  // NOLINT: registers
    KILTER_ROW t[v] = _mm512_mul_ps(t[v], by.inverse_scale);
    KILTER_ROW t[v] = _mm512_add_ps(t[v], by.zero_point);
    KILTER_ROW t[v] = _mm512_max_ps(t[v], by.low);  // in this order NaN becomes the lowest byte
    KILTER_ROW t[v] = _mm512_min_ps(t[v], by.high);
    KILTER_ROW bytes[v] = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(t[v]));
    if (whole)
        KILTER_ROW _mm_storeu_si128(reinterpret_cast<__m128i*>(to + v * kLanes), bytes[v]);
    else
        KILTER_ROW _mm_mask_storeu_epi8(to + v * kLanes, masks[v], bytes[v]);
}

// Everything is copied to local variables first: a store of bytes may change any memory the compiler knows of.
template <int kVectors, class Steps>
KILTER_VNNI void store(const std::vector<SumStep>& steps, const ResultType& type, const SumTile& tile) {
    const Steps function = Steps::make(steps, tile);
    __mmask16 masks[kVectors];  // NOLINT: registers
    Row<kVectors> scales;
    Row<kVectors> bias;
    const bool biased = tile.bias != nullptr;
    KILTER_ROW {
        const int64_t lanes = std::clamp<int64_t>(tile.columns - v * kLanes, 0, kLanes);
        masks[v] = static_cast<__mmask16>((1U << lanes) - 1);
        scales.t[v] = _mm512_loadu_ps(tile.scales + v * kLanes);
        bias.t[v] = biased ? _mm512_loadu_ps(tile.bias + v * kLanes) : _mm512_setzero_ps();
    }
    const bool whole = tile.columns == kVectors * kLanes;
    const bool floats = type.dtype == DType::f32;
    const __m512 low = _mm512_set1_ps(type.dtype == DType::u8 ? 0.0F : -128.0F);
    const Rounding rounding{_mm512_set1_ps(type.inverse_scale), _mm512_set1_ps(type.zero_point), low,
                            _mm512_add_ps(low, _mm512_set1_ps(255.0F))};
    const int64_t stride = tile.stride;
    const int64_t rows = tile.rows;
    const int32_t* sums = tile.sums;
    char* result = tile.result;
    for (int64_t r = 0; r < rows; ++r) {
        Row<kVectors> row;
        KILTER_ROW row.t[v] = _mm512_cvtepi32_ps(_mm512_load_si512(sums + r * kTileColumns + v * kLanes));
        KILTER_ROW row.t[v] = _mm512_mul_ps(row.t[v], scales.t[v]);
        if (biased) KILTER_ROW row.t[v] = _mm512_add_ps(row.t[v], bias.t[v]);
        function(row, r * stride, masks);
        if (floats)
            store_floats(row, whole, masks, result + r * stride * 4);
        else
            store_bytes(row, rounding, whole, masks, result + r * stride);
    }
}

template <int kVectors>
void store_panel(const std::vector<SumStep>& steps, const ResultType& type, const SumTile& tile) {
    using Kind = SumStep::Kind;
    if (steps.empty()) return store<kVectors, NoSteps>(steps, type, tile);
    if (steps.size() == 1 && steps.front().kind == Kind::gelu)
        return store<kVectors, OneStep<Kind::gelu>>(steps, type, tile);
    if (steps.size() == 1 && steps.front().kind == Kind::add_f32)
        return store<kVectors, OneStep<Kind::add_f32>>(steps, type, tile);
    if (steps.size() == 1 && steps.front().kind == Kind::relu)
        return store<kVectors, OneStep<Kind::relu>>(steps, type, tile);
    store<kVectors, ManySteps>(steps, type, tile);
}

}  // namespace

std::optional<std::vector<SumStep>> sum_steps(const FloatTail& tail, const std::vector<DType>& dtypes) {
    if (tail.ops.size() > kMostSteps) return std::nullopt;
    using Kind = SumStep::Kind;
    std::vector<SumStep> steps;
    size_t binary = 0;
    for (const PostOp& op : tail.ops) {
        SumStep step{Kind::relu, op.alpha, op.beta, op.operand};
        if (op.is_binary()) {
            const DType dtype = dtypes.at(static_cast<size_t>(op.operand));
            const float scale = tail.operand_scales[binary];
            if (op.name != "add" || (scale == 0) != (dtype == DType::f32)) return std::nullopt;
            step.kind = dtype == DType::f32  ? Kind::add_f32
                        : dtype == DType::u8 ? Kind::add_u8
                                             : Kind::add_i8;
            step.alpha = scale;
            step.beta = static_cast<float>(tail.operand_zero_points[binary]);
            ++binary;
        } else if (op.name == "clip") {
            step.kind = Kind::clip;
        } else if (op.name == "linear") {
            step.kind = Kind::linear;
        } else if (op.name == "gelu_erf") {
            step.kind = Kind::gelu;
        } else if (op.name != "relu") {
            return std::nullopt;
        }
        steps.push_back(step);
    }
    return steps;
}

void store_sums(const std::vector<SumStep>& steps, const ResultType& type, int64_t vectors,
                const SumTile& tile) {
    if (vectors == 1) return store_panel<1>(steps, type, tile);
    if (vectors == 2) return store_panel<2>(steps, type, tile);
    store_panel<3>(steps, type, tile);
}

}  // namespace kilter::engine
