// Freezing: variables become constants, and what only training or saving needs goes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

//! Variables get the values that the graph's own restore operators would give them, from the checkpoint `prefix`.
//! Of the graph only what `outputs` need is left; functions must be inlined. Throws Error when a variable that is
//! needed has no value.
void freeze_variables(TfGraph& graph, const std::filesystem::path& prefix,
                      const std::vector<std::string>& outputs);

//! Keeps the nodes that the outputs need, through data or control inputs; functions stay.
void keep_ancestors(TfGraph& graph, const std::vector<std::string>& outputs);

}  // namespace kilter::tensorflow
