// Graph to GraphProto and Function to FunctionProto.
#pragma once

#include "formats/onnx/names.h"
#include "formats/onnx/tensor_writer.h"
#include "formats/protobuf/message.h"
#include "kilter/graph/graph.h"

namespace kilter::onnx {

using protobuf::Message;

class GraphWriter {
  public:
    //! `list_constants`: the outermost graph lists its constants as inputs, as IR versions before 4 ask for.
    GraphWriter(ExternalData* external, bool list_constants)
        : external_(external), list_constants_(list_constants) {}

    Message write_graph(const Graph& graph, const Names* outer = nullptr) const;
    Message write_function(const Function& function) const;

  private:
    Message write_node(const Node& node, const Names& names) const;
    Message write_attribute(const std::string& name, const AttributeValue& value, const Names& names) const;

    ExternalData* attribute_data() const {
        return external_ != nullptr && external_->with_attributes ? external_ : nullptr;
    }

    ExternalData* external_;
    bool list_constants_;
};

Message write_opset(const std::string& domain, int64_t version);

}  // namespace kilter::onnx
