// Under which name each value of a graph is written. Passes keep the names of inputs and outputs but not
// those in between,
// and in a file a sub-graph reads outer values by name: both need names that differ from those in memory.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter::onnx {

class Names {
  public:
    //! `outer` names the values of the enclosing graph; null for the outermost.
    Names(const Graph& graph, const Names* outer);

    //! Empty for an absent value.
    const std::string& operator()(const Value* value) const;
    //! Names of the graph's outputs, in order.
    const std::vector<std::string>& outputs() const { return outputs_; }
    //! Outputs that no operator makes under their name: an Identity must copy the value.
    const std::vector<std::pair<const Value*, std::string>>& copies() const { return copies_; }

  private:
    std::string unused(const std::string& wanted);

    std::unordered_map<const Value*, std::string> names_;
    std::unordered_set<std::string> taken_;
    std::vector<std::string> outputs_;
    std::vector<std::pair<const Value*, std::string>> copies_;
};

}  // namespace kilter::onnx
