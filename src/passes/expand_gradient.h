// The training operator Gradient, written out as the operators that compute it.
#pragma once

#include "kilter/graph/graph.h"

namespace kilter {

inline constexpr std::string_view kTrainingDomain = "ai.onnx.preview.training";

//! Reverse-mode differentiation of the value named `y` by those named `xs`, which must be the inputs of `gradient`. Types
//! must have been inferred. `gradient` is left without outputs, for the caller to remove. Throws Error where an operator
//! between them has no rule.
void expand_gradient(Graph& graph, Node& gradient);

}  // namespace kilter
