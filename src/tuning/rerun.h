// Rerun: what a changed graph computes differently from another one, and a graph of only that. Values that both compute in the same
// way are taken from the first one's run, so that a change near the end of a model costs next to nothing.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

//! For each value (by id) a number that tells how it is computed: equal in two graphs when operators, attributes, constants and all
//! that comes before are equal. Large constants count as equal when they are the same bytes in memory.
std::vector<uint64_t> signatures(const Graph& graph);

//! The values of a quantized graph that are worth keeping: those on integers, a quarter of the size, while they fit into `bytes`; the
//! largest are left out first. Names, in the order of the graph. `samples` replaces an open first dimension.
std::vector<std::string> values_to_keep(const Graph& graph, int64_t samples, size_t bytes);

struct Rerun {
    Model model;                     // its inputs are values that are known already
    std::vector<std::string> known;  // for each input, the name the value has in the first graph
    bool changed = true;             // false: every output is the same as in the first graph
};

//! Cuts `model` down to what has to be computed, when the values of `known` (signature → name in the first graph) are there.
//! Inputs of the model are known by themselves.
Rerun rerun(const Model& model, const std::unordered_map<uint64_t, std::string>& known);

}  // namespace kilter
