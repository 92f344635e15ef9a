// Reading and writing ONNX files. Weights stay in the mapped file; nothing is copied on load.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "kilter/graph/graph.h"

namespace kilter::onnx {

//! Maps the file; external data is found beside it. Throws Error that names the file and what is wrong with it.
Model read(const std::filesystem::path& path);
//! From memory, which is copied once. External data is looked up in `base_directory`; empty means it is an error.
Model read_bytes(std::span<const std::byte> bytes, const std::filesystem::path& base_directory = {});

struct WriteOptions {
    //! Tensors of at least `external_threshold` bytes go to "<file>.data" when true; forced when the file would pass 2 GB.
    bool external_data = false;
    size_t external_threshold = 1024;
};

//! Written aside and renamed: `path` is never left half-written.
void write(const Model& model, const std::filesystem::path& path, const WriteOptions& options = {});
std::string write_bytes(const Model& model);

}  // namespace kilter::onnx
