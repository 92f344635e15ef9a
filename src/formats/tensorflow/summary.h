// What a graph takes, gives and is made of: the lines of the summarize_graph tool.
#pragma once

#include <string>

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

std::string summarize(const TfGraph& graph);

}  // namespace kilter::tensorflow
