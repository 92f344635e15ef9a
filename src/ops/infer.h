// Shape and type inference one operator at a time, for those who build or rewrite a graph in topological
// order.
#pragma once

#include <optional>
#include <unordered_map>

#include "kilter/graph/graph.h"

namespace kilter {

class NodeInference {
  public:
    explicit NodeInference(Graph& graph) : graph_(graph) {}
    //! Fills the types of the outputs of `node`, whose inputs must have been inferred before. Throws Error at
    //! a contradiction.
    void operator()(const Node& node);
    //! Contents of an integer tensor of rank 0 or 1, entries possibly symbolic; nothing when they are not known.
    std::optional<Dims> shape_data(const Value* value) const;

  private:
    Graph& graph_;
    std::unordered_map<const Value*, Dims> data_;  // contents of small integer tensors, as far as known
};

}  // namespace kilter
