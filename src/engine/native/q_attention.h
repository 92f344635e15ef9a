// Attention over heads of bytes on AVX512-VNNI: eight queries at a time go through scores, softmax and the product with the
// values without leaving the first caches. docs/arithmetic.md, "Attention".
#pragma once

#include "engine/builder.h"

namespace kilter::engine {

//! The step of a QAttention with u8 queries; false when this machine or these shapes are none for it.
bool build_q_attention(Builder& builder, const Node& node);

}  // namespace kilter::engine
