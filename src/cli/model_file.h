// The model that a command works on: its file, and which part of it.
#pragma once

#include <CLI/CLI.hpp>

#include "kilter/calibration/calibrate.h"
#include "kilter/formats/load.h"
#include "kilter/quantization/quantize.h"

namespace kilter::cli {

//! What --help says about MODEL.
inline constexpr const char* kModelFile = "ONNX file, TensorFlow graph or SavedModel folder, MXNet symbol";

//! What --help says about the file to write.
inline constexpr const char* kOutputFile = "ONNX file to write; PREFIX-symbol.json: MXNet, .pb: TensorFlow";

//! --inputs, --outputs, --signature and --input-shape.
void add_load_options(CLI::App& command, LoadOptions& options);

//! The options that a file of this format has a use for, where several files share them.
LoadOptions for_file(const std::string& path, const LoadOptions& options);

//! What a quantized model was made of. Other frameworks' models are written from it again, with the choices of the plan.
struct Origin {
    std::string model;
    LoadOptions load;
    std::vector<std::string> inputs;          // in the order of the samples' arrays
    std::function<SampleSource()> calibrate;  // starts the calibration samples from the beginning
};

//! Throws Error when `output` asks for a format that `model` cannot be written in: before any work is done.
void check_output(const std::string& model, const std::string& output);

//! Writes a quantized model in the format that the name of `output` asks for. Returns what is worth saying about it.
std::string save_as(const QuantizedModel& model, const Origin& origin, const std::string& output);

}  // namespace kilter::cli
