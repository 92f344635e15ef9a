// Winograd convolution F(2x2,3x3) and F(4x4,3x3) for f32 in nhwc: stride 1, one group, no dilation, AVX-512.
// Four outputs in each direction cost 36 products instead of 144; the rounding error stays below 1e-5 of the maximum.
#pragma once

#include <cstddef>

namespace kilter::engine {

struct WinogradShape {
    int batch = 1, height = 0, width = 0;   // of the input
    int in_channels = 0, out_channels = 0;  // in: multiple of 16; out: multiple of 32
    int pad_top = 1, pad_left = 1, pad_bottom = 1, pad_right = 1;

    int out_height() const { return height + pad_top + pad_bottom - 2; }
    int out_width() const { return width + pad_left + pad_right - 2; }
};

class Winograd {
  public:
    //! Can this machine and shape use the kernels at all?
    static bool supported(const WinogradShape& shape);
    //! Output pixels per tile and axis that pay for this shape: 4, 2, or 0 when the direct convolution is faster.
    static int best_tile(const WinogradShape& shape);

    Winograd(const WinogradShape& shape, int tile, int threads);

    size_t weight_floats() const;
    //! Transforms weights [out, in, 3, 3] into `packed`, weight_floats() long and 64-byte aligned.
    void pack(const float* weights, float* packed) const;
    size_t scratch_bytes() const;

    //! dst = clamp(conv(src) + bias + residual, low, high). bias may be null; residual may be null or equal to dst.
    //! scratch: 64-byte aligned, scratch_bytes() long.
    void execute(const float* src, const float* packed, const float* bias, float* dst, const float* residual,
                 float low, float high, float* scratch) const;

  private:
    struct Call;
    void run_share(const Call& call, int thread, int threads) const;
    size_t input_floats() const;    // transformed input of one block of tiles
    size_t product_floats() const;  // transformed output of one block of tiles and 32 channels
    size_t zero_floats() const;     // what pixels outside the image read

    WinogradShape shape_;
    int tile_, threads_, tiles_y_, tiles_x_, tiles_, block_;
    // Threads divide either the tiles (no barrier, every thread reads all weights) or, when there are few tiles or much
    // weight, the output channels (the transformed input is shared behind a barrier, weights are read once).
    bool split_channels_;
};

}  // namespace kilter::engine
