// The model that a command works on: its file, and which part of it.
#pragma once

#include <CLI/CLI.hpp>

#include "kilter/formats/load.h"

namespace kilter::cli {

//! What --help says about MODEL.
inline constexpr const char* kModelFile =
    "ONNX file, TensorFlow graph (.pb, .pbtxt) or SavedModel folder, MXNet symbol (-symbol.json)";

//! --inputs, --outputs, --signature and --input-shape.
void add_load_options(CLI::App& command, LoadOptions& options);

//! The options that a file of this format has a use for, where several files share them.
LoadOptions for_file(const std::string& path, const LoadOptions& options);

}  // namespace kilter::cli
