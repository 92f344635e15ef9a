// The parts of a GraphDef as protobuf messages: what both the files and the parts of files read and write.
#pragma once

#include <memory>
#include <string_view>

#include "formats/protobuf/fields.h"
#include "formats/protobuf/message.h"
#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

//! Functions named by attributes nest at most this deep: far beyond any real graph, well within the stack.
inline constexpr int kMaxNesting = 64;

using Keeper = std::shared_ptr<const void>;

TfShape read_shape(std::string_view message);
TfValue read_value(std::string_view message, const Keeper& keeper, int depth = 0);
//! An entry of a map of attributes; throws Error when it is there already.
void read_attribute(std::string_view message, const Keeper& keeper, TfAttributes& attributes, int depth = 0);
TfNode read_node(std::string_view message, const Keeper& keeper);
TfFunction read_function(std::string_view message, const Keeper& keeper);
//! A GraphDef; not checked yet.
TfGraph read_graph(std::string_view message, const Keeper& keeper);

//! What these return refers to the tensors of their argument, which must outlive it.
protobuf::Message write_shape(const TfShape& shape);
protobuf::Message write_value(const TfValue& value);
protobuf::Message write_node(const TfNode& node);
protobuf::Message write_graph(const TfGraph& graph);

}  // namespace kilter::tensorflow
