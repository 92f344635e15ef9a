// SavedModel folders: one signature of one becomes a frozen graph, functions inlined and variables made constants.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

struct SavedModel {
    TfGraph graph;
    //! The signature's names, in alphabetical order; the graph's placeholders and outputs are called so.
    std::vector<std::string> inputs, outputs;
};

//! `path` is the folder, or saved_model.pb in it. An empty `signature` is serving_default, or the only one there is.
//! Throws Error that names the file and what is wrong with it.
SavedModel read_saved_model(const std::filesystem::path& path, const std::string& signature = {});

}  // namespace kilter::tensorflow
