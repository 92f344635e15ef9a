// Quantized models for MXNet: a symbol and parameters that stock MXNet 1.9 loads and runs on integers by its oneDNN operators.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kilter/quantization/quantize.h"

namespace kilter::mxnet {

struct ExportedOperator {
    std::string name, op;
    std::string fused;  // as MXNet calls what it became part of; empty when it stayed in floating point
    std::string note;   // why
};

//! Writes `prefix`-symbol.json and `prefix`-0000.params: the source model with the operators of the plan that are on integers
//! rewritten. Each file is written aside and renamed. Throws Error when the source is another model.
std::vector<ExportedOperator> export_model(const QuantizedModel& quantized,
                                           const std::filesystem::path& source,
                                           const std::filesystem::path& prefix);

}  // namespace kilter::mxnet
