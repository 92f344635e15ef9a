// The model that a command works on: its file, and which part of it.
#pragma once

#include <CLI/CLI.hpp>

#include "kilter/formats/load.h"
#include "kilter/quantization/quantize.h"

namespace kilter::cli {

//! What --help says about MODEL.
inline constexpr const char* kModelFile = "ONNX file, TensorFlow graph or SavedModel folder, MXNet symbol";

//! What --help says about the file to write.
inline constexpr const char* kOutputFile = "ONNX file to write, or PREFIX-symbol.json for MXNet";

//! --inputs, --outputs, --signature and --input-shape.
void add_load_options(CLI::App& command, LoadOptions& options);

//! The options that a file of this format has a use for, where several files share them.
LoadOptions for_file(const std::string& path, const LoadOptions& options);

//! Writes a quantized model in the format that the name of `output` asks for.
void save_as(const QuantizedModel& model, const std::string& source, const std::string& output);

}  // namespace kilter::cli
