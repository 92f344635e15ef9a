// Reading a model, whatever its format: ONNX files, TensorFlow's GraphDef files (binary or text) and SavedModel folders,
// MXNet's symbols with their parameters.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

enum class ModelFormat { onnx, graph_def, saved_model, mxnet };

//! By kind, name and first bytes of the file. Throws Error when there is no such file.
ModelFormat format_of(const std::filesystem::path& path);

struct LoadOptions {
    //! TensorFlow only. Tensors that are fed and fetched ("name", "name:1"), also inside of the graph; empty: the
    //! placeholders, and what nobody reads.
    std::vector<std::string> inputs, outputs;
    //! Of a SavedModel; empty: serving_default, or the only one there is.
    std::string signature;
    //! MXNet only: shapes of inputs, which its files seldom tell; -1 for dimensions that stay open.
    std::vector<std::pair<std::string, Shape>> shapes;
};

//! The entry of a model's metadata that says which signature of a SavedModel it is, when it was chosen.
inline constexpr const char* kSignatureKey = "kilter.signature";

//! What a TensorFlow model takes, gives and is made of, in the words of its summarize_graph tool; empty for ONNX.
std::string summarize_file(const std::filesystem::path& path, const LoadOptions& options = {});

//! Throws Error that names the file and what is wrong with it.
Model load_model(const std::filesystem::path& path, const LoadOptions& options = {});

}  // namespace kilter
