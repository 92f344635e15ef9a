#include "engine/native/winograd.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "engine/native/simd.h"

// _mm512_max_ps and _mm512_min_ps draw false warnings from GCC 12 (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace kilter::engine {
namespace {

#define KILTER_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define KILTER_AVX512_INLINE KILTER_AVX512 __attribute__((always_inline)) inline

constexpr int kLanes = 16;          // floats per vector
constexpr int kPanel = 2 * kLanes;  // output channels per weight panel
constexpr int kMaxRows = 14;        // tiles per register block: 14 x 2 accumulators
constexpr int kTargetBlock = 4 * kMaxRows;

// Row stride of the transformed input: padded, lest rows a power of two apart share cache sets.
int input_stride(int channels) { return channels + kLanes; }

// One-dimensional transforms, `step` being the distance between elements. F(2,3) with the points 0, 1, -1, inf;
// F(4,3) with 0, a, -a, b, -b, inf where a = sqrt(1/2), b = sqrt(2): a third to a seventh of the rounding error of the
// customary 1 and 2.

template <int M>
struct Transform;

template <>
struct Transform<2> {
    static constexpr int points = 4;
    static constexpr double weights[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};

    KILTER_AVX512_INLINE static void input(__m512* d, int step) {
        __m512 d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
        d[0] = _mm512_sub_ps(d0, d2);
        d[step] = _mm512_add_ps(d1, d2);
        d[2 * step] = _mm512_sub_ps(d2, d1);
        d[3 * step] = _mm512_sub_ps(d3, d1);
    }
    KILTER_AVX512_INLINE static void output(__m512* d, int step) {
        __m512 sum = _mm512_add_ps(d[step], d[2 * step]), dif = _mm512_sub_ps(d[step], d[2 * step]);
        d[0] = _mm512_add_ps(d[0], sum);
        d[step] = _mm512_add_ps(dif, d[3 * step]);
    }
};

template <>
struct Transform<4> {
    static constexpr int points = 6;
    static constexpr double near = 0.70710678118654752440, far = 2 * near;  // a, b; a * b = 1
    static constexpr double weights[6][3] = {{1, 0, 0},
                                             {-2. / 3, -2. / 3 * near, -1. / 3},
                                             {-2. / 3, 2. / 3 * near, -1. / 3},
                                             {1. / 6, 1. / 6 * far, 1. / 3},
                                             {1. / 6, -1. / 6 * far, 1. / 3},
                                             {0, 0, 1}};

    KILTER_AVX512_INLINE static void input(__m512* d, int step) {
        const __m512 a = _mm512_set1_ps(near), b = _mm512_set1_ps(far);
        const __m512 half = _mm512_set1_ps(.5f), two = _mm512_set1_ps(2), both = _mm512_set1_ps(2.5f);
        __m512 d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step],
               d5 = d[5 * step];
        __m512 even_a = _mm512_fnmadd_ps(two, d2, d4), odd_a = _mm512_fnmadd_ps(two, d1, d3);
        __m512 even_b = _mm512_fnmadd_ps(half, d2, d4), odd_b = _mm512_fnmadd_ps(half, d1, d3);
        d[0] = _mm512_fnmadd_ps(both, d2, _mm512_add_ps(d0, d4));
        d[step] = _mm512_fmadd_ps(a, odd_a, even_a);
        d[2 * step] = _mm512_fnmadd_ps(a, odd_a, even_a);
        d[3 * step] = _mm512_fmadd_ps(b, odd_b, even_b);
        d[4 * step] = _mm512_fnmadd_ps(b, odd_b, even_b);
        d[5 * step] = _mm512_fnmadd_ps(both, d3, _mm512_add_ps(d1, d5));
    }
    KILTER_AVX512_INLINE static void output(__m512* d, int step) {
        const __m512 a = _mm512_set1_ps(near), b = _mm512_set1_ps(far);
        const __m512 a2 = _mm512_set1_ps(.5f), b2 = _mm512_set1_ps(2);
        const __m512 a3 = _mm512_set1_ps(near / 2), b3 = _mm512_set1_ps(far * 2);
        __m512 sum_a = _mm512_add_ps(d[step], d[2 * step]), dif_a = _mm512_sub_ps(d[step], d[2 * step]);
        __m512 sum_b = _mm512_add_ps(d[3 * step], d[4 * step]),
               dif_b = _mm512_sub_ps(d[3 * step], d[4 * step]);
        __m512 last = d[5 * step];
        d[0] = _mm512_add_ps(d[0], _mm512_add_ps(sum_a, sum_b));
        d[step] = _mm512_fmadd_ps(a, dif_a, _mm512_mul_ps(b, dif_b));
        d[2 * step] = _mm512_fmadd_ps(a2, sum_a, _mm512_mul_ps(b2, sum_b));
        d[3 * step] = _mm512_fmadd_ps(a3, dif_a, _mm512_fmadd_ps(b3, dif_b, last));
    }
};

// pixels: the P*P input pixels of one tile; out: point p's row for this tile lies at out + p * point_step.
template <int M>
KILTER_AVX512 void transform_input(const float* const* pixels, int channels, float* out, size_t point_step) {
    constexpr int P = Transform<M>::points;
    for (int c = 0; c < channels; c += kLanes) {
        __m512 d[P * P];
#pragma GCC unroll 36
        for (int i = 0; i < P * P; i++) d[i] = _mm512_loadu_ps(pixels[i] + c);
#pragma GCC unroll 6
        for (int x = 0; x < P; x++) Transform<M>::input(d + x, P);
#pragma GCC unroll 6
        for (int y = 0; y < P; y++) {
            Transform<M>::input(d + y * P, 1);
#pragma GCC unroll 6
            for (int x = 0; x < P; x++) _mm512_store_ps(out + (y * P + x) * point_step + c, d[y * P + x]);
        }
    }
}

// products: point p's 32 channels for this tile lie at products + p * point_step; pixels and residual: where
// the M*M output pixels go, and what is added to them (both at the first of the 32 channels).
template <int M>
KILTER_AVX512 void transform_output(const float* products, size_t point_step, const float* bias,
                                    float* const* pixels, const float* const* residual, float low,
                                    float high) {
    constexpr int P = Transform<M>::points;
    const __m512 lo = _mm512_set1_ps(low), hi = _mm512_set1_ps(high);
    for (int c = 0; c < kPanel; c += kLanes) {
        __m512 d[P * P];
#pragma GCC unroll 6
        for (int x = 0; x < P; x++) {
#pragma GCC unroll 6
            for (int y = 0; y < P; y++)
                d[y * P + x] = _mm512_load_ps(products + (y * P + x) * point_step + c);
            Transform<M>::output(d + x, P);
        }
        const __m512 shift = _mm512_loadu_ps(bias + c);
#pragma GCC unroll 4
        for (int y = 0; y < M; y++) {
            Transform<M>::output(d + y * P, 1);
#pragma GCC unroll 4
            for (int x = 0; x < M; x++) {
                __m512 v = _mm512_add_ps(d[y * P + x], shift);
                if (residual) v = _mm512_add_ps(v, _mm512_loadu_ps(residual[y * M + x] + c));
                _mm512_storeu_ps(pixels[y * M + x] + c, _mm512_min_ps(_mm512_max_ps(v, lo), hi));
            }
        }
    }
}

// out[R x 32] = a[R x depth] * b[depth x 32]
template <int R>
KILTER_AVX512 void multiply(const float* a, int a_step, const float* b, int depth, float* out) {
    __m512 acc[R][2];
#pragma GCC unroll 14
    for (int r = 0; r < R; r++) acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    for (int k = 0; k < depth; k++, b += kPanel) {
        const __m512 b0 = _mm512_load_ps(b), b1 = _mm512_load_ps(b + kLanes);
#pragma GCC unroll 14
        for (int r = 0; r < R; r++) {
            const __m512 v = _mm512_set1_ps(a[(size_t)r * a_step + k]);
            acc[r][0] = _mm512_fmadd_ps(v, b0, acc[r][0]);
            acc[r][1] = _mm512_fmadd_ps(v, b1, acc[r][1]);
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < R; r++) {
        _mm512_store_ps(out + r * kPanel, acc[r][0]);
        _mm512_store_ps(out + r * kPanel + kLanes, acc[r][1]);
    }
}

using MultiplyFunction = void (*)(const float*, int, const float*, int, float*);
constexpr MultiplyFunction kMultiplyRows[kMaxRows + 1] = {
    nullptr,      multiply<1>,  multiply<2>,  multiply<3>,  multiply<4>,
    multiply<5>,  multiply<6>,  multiply<7>,  multiply<8>,  multiply<9>,
    multiply<10>, multiply<11>, multiply<12>, multiply<13>, multiply<14>};

// rows in near-equal register blocks of at most kMaxRows
void multiply_block(const float* a, int a_step, const float* b, int depth, int rows, float* out) {
    for (int blocks = (rows + kMaxRows - 1) / kMaxRows; blocks > 0; blocks--) {
        int r = (rows + blocks - 1) / blocks;
        kMultiplyRows[r](a, a_step, b, depth, out);
        a += (size_t)r * a_step, out += r * kPanel, rows -= r;
    }
}

template <int M>
void transform_weights(const WinogradShape& shape, const float* weights, float* out) {
    constexpr int P = Transform<M>::points;
    const auto& g = Transform<M>::weights;
#pragma omp parallel for schedule(static)
    for (int k = 0; k < shape.out_channels; ++k) {
        for (int c = 0; c < shape.in_channels; ++c) {
            const float* w = weights + (static_cast<size_t>(k) * shape.in_channels + c) * 9;
            double half[P][3];
            for (int i = 0; i < P; ++i)
                for (int x = 0; x < 3; ++x)
                    half[i][x] = g[i][0] * w[x] + g[i][1] * w[3 + x] + g[i][2] * w[6 + x];
            for (int i = 0; i < P; ++i) {
                for (int j = 0; j < P; ++j) {
                    const size_t point = static_cast<size_t>(k / kPanel) * P * P + i * P + j;
                    out[(point * shape.in_channels + c) * kPanel + k % kPanel] = static_cast<float>(
                        half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2]);
                }
            }
        }
    }
}

size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

}  // namespace

struct Winograd::Call {
    const float* src;
    const float* weights;  // [out_channels/32][points][in_channels][32]
    const float* bias;
    float* dst;
    const float* residual;
    float low, high;
    const float* zeros;
    float* inputs;
    float* products;
};

bool Winograd::supported(const WinogradShape& shape) {
    return isa() == Isa::avx512 && shape.in_channels % kLanes == 0 && shape.out_channels % kPanel == 0 &&
           shape.out_height() > 0 && shape.out_width() > 0;
}

int Winograd::best_tile(const WinogradShape& shape) {
    // Few channels: the transforms cost more than the products they save.
    if (!supported(shape) || shape.in_channels * shape.out_channels < 32 * 32) return 0;
    const auto tiles = [&](int tile) {
        return shape.batch * ((shape.out_height() + tile - 1) / tile) *
               ((shape.out_width() + tile - 1) / tile);
    };
    // Each weight is read once per run and used once per tile: with few tiles the larger weights of F4 cost more than the
    // products it saves, and with very few neither form pays.
    if (tiles(4) >= 8) return 4;
    return tiles(2) >= 8 ? 2 : 0;
}

Winograd::Winograd(const WinogradShape& shape, int tile, int threads)
    : shape_(shape), tile_(tile), threads_(threads) {
    tiles_y_ = (shape.out_height() + tile - 1) / tile;
    tiles_x_ = (shape.out_width() + tile - 1) / tile;
    tiles_ = shape.batch * tiles_y_ * tiles_x_;
    constexpr size_t kMuchWeight = size_t{16} << 20;
    split_channels_ = threads > 1 && (tiles_ < threads * 8 || weight_floats() * sizeof(float) > kMuchWeight);
    // A block is what is transformed before it is multiplied: for shared blocks as much as keeps the weights' traffic
    // low, for private ones a few register blocks.
    const int wanted = split_channels_ ? 4 * kTargetBlock : kTargetBlock;
    const int mine = split_channels_ ? tiles_ : (tiles_ + threads - 1) / threads;
    const int blocks = (mine + wanted - 1) / wanted;
    block_ = (mine + blocks - 1) / blocks;
    block_ = std::min(static_cast<int>(round_up(static_cast<size_t>(block_), kMaxRows)), mine);
}

size_t Winograd::weight_floats() const {
    return static_cast<size_t>((tile_ + 2) * (tile_ + 2)) * static_cast<size_t>(shape_.in_channels) *
           static_cast<size_t>(shape_.out_channels);
}

void Winograd::pack(const float* weights, float* packed) const {
    if (tile_ == 2)
        transform_weights<2>(shape_, weights, packed);
    else
        transform_weights<4>(shape_, weights, packed);
}

size_t Winograd::input_floats() const {
    return static_cast<size_t>((tile_ + 2) * (tile_ + 2)) * block_ * input_stride(shape_.in_channels);
}

size_t Winograd::product_floats() const {
    const size_t pixel_outside = kPanel;
    return static_cast<size_t>((tile_ + 2) * (tile_ + 2)) * std::min(block_, kTargetBlock) * kPanel +
           pixel_outside;
}

size_t Winograd::zero_floats() const {
    return static_cast<size_t>(std::max(shape_.in_channels, shape_.out_channels));
}

size_t Winograd::scratch_bytes() const {
    const auto threads = static_cast<size_t>(threads_);
    return sizeof(float) *
           (zero_floats() + (split_channels_ ? 1 : threads) * input_floats() + threads * product_floats());
}

void Winograd::run_share(const Call& call, int thread, int threads) const {
    const WinogradShape& s = shape_;
    const int span = tile_ + 2;
    const int points = span * span;
    const int stride = input_stride(s.in_channels);
    const int height = s.out_height();
    const int width = s.out_width();
    const int panels = s.out_channels / kPanel;
    float* const inputs = call.inputs + (split_channels_ ? 0 : static_cast<size_t>(thread) * input_floats());
    float* const products = call.products + static_cast<size_t>(thread) * product_floats();
    float* const outside = products + product_floats() - kPanel;
    const auto input = tile_ == 2 ? transform_input<2> : transform_input<4>;
    const auto output = tile_ == 2 ? transform_output<2> : transform_output<4>;
    const auto share = [&](int count, int part) {
        return static_cast<int>(static_cast<long>(count) * part / threads);
    };

    const int first = split_channels_ ? 0 : share(tiles_, thread);
    const int last = split_channels_ ? tiles_ : share(tiles_, thread + 1);
    for (int begin = first; begin < last; begin += block_) {
        const int count = std::min(block_, last - begin);
        const size_t point_step = static_cast<size_t>(count) * stride;
        const int from = split_channels_ ? share(count, thread) : 0;
        const int to = split_channels_ ? share(count, thread + 1) : count;
        for (int t = from; t < to; ++t) {
            const int x0 = (begin + t) % tiles_x_ * tile_ - s.pad_left;
            const int y0 = (begin + t) / tiles_x_ % tiles_y_ * tile_ - s.pad_top;
            const float* image = call.src + static_cast<size_t>((begin + t) / tiles_x_ / tiles_y_) *
                                                s.height * s.width * s.in_channels;
            const float* pixels[36];
            for (int y = y0, i = 0; y < y0 + span; ++y)
                for (int x = x0; x < x0 + span; ++x, ++i)
                    pixels[i] = y < 0 || y >= s.height || x < 0 || x >= s.width
                                    ? call.zeros
                                    : image + (static_cast<size_t>(y) * s.width + x) * s.in_channels;
            input(pixels, s.in_channels, inputs + static_cast<size_t>(t) * stride, point_step);
        }
        if (split_channels_) {
#pragma omp barrier
        }
        const int panel_from = split_channels_ ? share(panels, thread) : 0;
        const int panel_to = split_channels_ ? share(panels, thread + 1) : panels;
        for (int k = panel_from; k < panel_to; ++k) {
            for (int sub = 0; sub < count; sub += kTargetBlock) {
                const int rows = std::min(kTargetBlock, count - sub);
                for (int p = 0; p < points; ++p)
                    multiply_block(
                        inputs + p * point_step + static_cast<size_t>(sub) * stride, stride,
                        call.weights + (static_cast<size_t>(k) * points + p) * s.in_channels * kPanel,
                        s.in_channels, rows, products + static_cast<size_t>(p) * rows * kPanel);
                for (int t = 0; t < rows; ++t) {
                    const int index = begin + sub + t;
                    const int x0 = index % tiles_x_ * tile_;
                    const int y0 = index / tiles_x_ % tiles_y_ * tile_;
                    const size_t image = static_cast<size_t>(index / tiles_x_ / tiles_y_) * height * width;
                    float* pixels[16];
                    const float* addend[16];
                    for (int y = y0, i = 0; y < y0 + tile_; ++y) {
                        for (int x = x0; x < x0 + tile_; ++x, ++i) {
                            const size_t at =
                                (image + static_cast<size_t>(y) * width + x) * s.out_channels + k * kPanel;
                            const bool inside = y < height && x < width;
                            pixels[i] = inside ? call.dst + at : outside;
                            addend[i] = inside && call.residual != nullptr ? call.residual + at : call.zeros;
                        }
                    }
                    output(products + static_cast<size_t>(t) * kPanel, static_cast<size_t>(rows) * kPanel,
                           call.bias == nullptr ? call.zeros : call.bias + k * kPanel, pixels,
                           call.residual != nullptr ? addend : nullptr, call.low, call.high);
                }
            }
        }
        if (split_channels_ && begin + block_ < last) {
#pragma omp barrier
        }
    }
}

void Winograd::execute(const float* src, const float* packed, const float* bias, float* dst,
                       const float* residual, float low, float high, float* scratch) const {
    std::memset(scratch, 0, zero_floats() * sizeof(float));
    float* inputs = scratch + zero_floats();
    float* products = inputs + (split_channels_ ? 1 : static_cast<size_t>(threads_)) * input_floats();
    const Call call{src, packed, bias, dst, residual, low, high, scratch, inputs, products};
    // Fewer threads than asked for (nested regions, limits) merely take larger shares.
#pragma omp parallel num_threads(threads_)
    run_share(call, omp_get_thread_num(), omp_get_num_threads());
}

}  // namespace kilter::engine
