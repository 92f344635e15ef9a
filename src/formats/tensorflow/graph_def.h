// GraphDef files: read, checked and written.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {

//! Maps the file, which is binary or text (.pbtxt). Throws Error that names the file and what is wrong with it.
TfGraph read_graph_def(const std::filesystem::path& path);
//! From memory, which is copied once.
TfGraph read_graph_def_bytes(std::span<const std::byte> bytes);

//! Written aside and renamed; as text when the name ends in .pbtxt.
void write_graph_def(const TfGraph& graph, const std::filesystem::path& path);
std::string write_graph_def_bytes(const TfGraph& graph);

}  // namespace kilter::tensorflow
