// The model that a command works on: its file, and which part of it.
#pragma once

#include <CLI/CLI.hpp>

#include "kilter/formats/load.h"

namespace kilter::cli {

//! What --help says about MODEL.
inline constexpr const char* kModelFile = "ONNX file, TensorFlow graph (.pb, .pbtxt) or SavedModel folder";

//! --inputs, --outputs and --signature.
void add_load_options(CLI::App& command, LoadOptions& options);

//! The options where one of several files has a use for them: none for ONNX.
LoadOptions for_file(const std::string& path, const LoadOptions& options);

}  // namespace kilter::cli
