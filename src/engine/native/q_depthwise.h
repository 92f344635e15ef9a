// Depthwise convolutions of bytes on AVX512-VNNI: the rows under a kernel are interleaved so that one instruction multiplies
// four of them for sixteen channels. The same bits as oneDNN 3.2's kernels; docs/engine.md says how much faster.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/builder.h"
#include "engine/geometry.h"
#include "ops/integer_result.h"

namespace kilter::engine {

struct DepthwiseShape {
    int64_t images, channels, height, width, out_height, out_width;
    int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
};

class QDepthwise {
  public:
    //! Does this machine have the instructions, and is the kernel small enough for them?
    static bool supports(const DepthwiseShape& shape);

    QDepthwise(const DepthwiseShape& shape, uint8_t zero_point, ResultType type, float low, float high);

    //! What `execute` reads: weights, scales and biases in the order of the registers.
    size_t packed_bytes() const;
    //! `weights` are [channels, kernel_h, kernel_w], `scales` one or one per channel, `bias` null or one per channel.
    void pack(const int8_t* weights, const std::vector<float>& scales, const float* bias, char* packed) const;
    //! Channels-last arrays. y = requantize(clamp(sum·scale + bias, low, high)).
    void execute(const uint8_t* x, const char* packed, uint8_t* y) const;

  private:
    DepthwiseShape shape_;
    uint8_t zero_point_;
    ResultType type_;
    float low_, high_;
    int64_t groups_;  // of four kernel rows
};

//! The step of a depthwise QConv on u8 with at most a clamp behind it; false when it is something else.
bool build_q_depthwise(Builder& builder, const Node& node, const ConvGeometry& geometry);

}  // namespace kilter::engine
