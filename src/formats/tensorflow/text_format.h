// The text form of protobuf messages, for GraphDef (.pbtxt): translated to and from the binary form.
#pragma once

#include <string>
#include <string_view>

namespace kilter::tensorflow {

//! Does this look like the text of a GraphDef?
bool is_text_graph(std::string_view content);
//! The serialized GraphDef. Throws Error with the line of what is wrong.
std::string graph_def_from_text(std::string_view text);
//! Fields that have no name here are left out.
std::string graph_def_to_text(std::string_view serialized);

}  // namespace kilter::tensorflow
