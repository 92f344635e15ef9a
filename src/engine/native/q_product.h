// Products of bytes with constant matrices on AVX512-VNNI. The same bits as the scalar kernel (GELU: as close as two
// implementations are); docs/engine.md says why oneDNN's kernels are not used.
#pragma once

#include "engine/builder.h"

namespace kilter::engine {

//! The step of a QMatMul of u8 rows with a constant matrix; false when it is something else.
bool build_q_product(Builder& builder, const Node& node);

}  // namespace kilter::engine
