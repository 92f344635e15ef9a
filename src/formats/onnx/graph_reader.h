// GraphProto and FunctionProto to Graph: values by name, nodes, attributes, sub-graphs with what they
// capture.
#pragma once

#include <string>
#include <string_view>

#include "formats/onnx/tensor_reader.h"
#include "kilter/graph/graph.h"

namespace kilter::onnx {

class GraphReader {
  public:
    explicit GraphReader(TensorReader& tensors) : tensors_(tensors) {}

    Graph read_graph(std::string_view message);
    Function read_function(std::string_view message);

  private:
    //! The graphs around the one being read, innermost first: where captured names are looked up.
    struct Scope {
        Graph& graph;
        Scope* parent;
    };

    //! The value called `name`; values of the graphs around are captured on the way in. Null when there is
    //! none.
    static Value* resolve(const std::string& name, Scope* scope);

    void read_graph(std::string_view message, Graph& graph, Scope* parent);
    void declare_values(std::string_view message, Graph& graph);
    void add_outputs(std::string_view message, Scope& scope);
    void read_node(std::string_view message, size_t index, Scope& scope);
    //! What the attribute carries besides its value is appended to `foreign` as an attribute of that name in
    //! `field`.
    void read_attribute(std::string_view message, Scope& scope, Attributes& attributes, uint32_t field,
                        std::string& foreign);
    AttributeValue read_attribute_value(std::string_view message, int64_t type, Scope& scope);
    std::shared_ptr<Graph> read_subgraph(std::string_view message, Scope& scope);

    TensorReader& tensors_;
    int depth_ = 0;
};

//! OperatorSetIdProto and StringStringEntryProto.
std::pair<std::string, int64_t> read_opset(std::string_view message);
std::pair<std::string, std::string> read_entry(std::string_view message);

}  // namespace kilter::onnx
