// Small TensorFlow graphs for the tests.
#pragma once

#include <span>
#include <string>

#include "formats/tensorflow/graph_def.h"

namespace kilter::tensorflow::testing {

//! Every kind of attribute, control inputs, a function, a loop, unknown fields: a GraphDef as odd as files in the wild.
std::string rich_graph();

TfGraph read_text(const std::string& bytes);
//! The message of the Error that reading throws; empty when it throws none.
std::string reading_error(const std::string& bytes);
std::string reading_error(const TfGraph& graph);

}  // namespace kilter::tensorflow::testing
