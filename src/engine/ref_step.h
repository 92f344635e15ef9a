// A step that runs the operator's scalar reference kernel on dense arrays.
#pragma once

#include "engine/plan.h"

namespace kilter::engine {

std::unique_ptr<Step> make_reference_step(const Node& node, std::vector<Array> inputs,
                                          std::vector<Array> outputs);

}  // namespace kilter::engine
