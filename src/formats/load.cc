#include "kilter/formats/load.h"

#include <fstream>

#include "base/fail.h"
#include "formats/tensorflow/graph_def.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/saved_model.h"
#include "formats/tensorflow/summary.h"
#include "kilter/formats/mxnet.h"
#include "kilter/formats/onnx.h"

namespace kilter {
namespace {

// How an ONNX file, and a SavedModel, begin: field 1 is a number. In a GraphDef it is a message.
constexpr int kNumberFirst = 0x08;

// A GraphDef is a SavedModel without a signature.
tensorflow::SavedModel read_tensorflow(const std::filesystem::path& path, ModelFormat format,
                                       const LoadOptions& options) {
    if (format == ModelFormat::saved_model) return tensorflow::read_saved_model(path, options.signature);
    return {tensorflow::read_graph_def(path), {}, {}};
}

Model load_tensorflow(const std::filesystem::path& path, ModelFormat format, const LoadOptions& options) {
    const tensorflow::SavedModel saved = read_tensorflow(path, format, options);
    try {
        Model model =
            tensorflow::lower(saved.graph, {options.inputs.empty() ? saved.inputs : options.inputs,
                                            options.outputs.empty() ? saved.outputs : options.outputs});
        // For who reads the folder again.
        if (!options.signature.empty()) model.metadata.emplace_back(kSignatureKey, options.signature);
        return model;
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

Model load_mxnet(const std::filesystem::path& path, const LoadOptions& options) {
    mxnet::ReadOptions read;
    for (const auto& [name, shape] : options.shapes) {
        Dims dims;
        for (const int64_t dim : shape)
            dims.push_back(dim >= 0 ? Dim(dim) : dims.empty() ? Dim("batch") : Dim());
        read.inputs.emplace_back(name, ValueType(DType::undefined, std::move(dims)));
    }
    return mxnet::read(path, read);
}

}  // namespace

ModelFormat format_of(const std::filesystem::path& path) {
    std::error_code ignored;
    if (mxnet::is_model(path)) return ModelFormat::mxnet;
    if (std::filesystem::is_directory(path, ignored) || path.filename() == "saved_model.pb")
        return ModelFormat::saved_model;
    const std::string extension = path.extension().string();
    if (extension == ".pbtxt") return ModelFormat::graph_def;
    if (extension != ".pb") return ModelFormat::onnx;
    return std::ifstream(path, std::ios::binary).get() == kNumberFirst ? ModelFormat::onnx
                                                                       : ModelFormat::graph_def;
}

std::string summarize_file(const std::filesystem::path& path, const LoadOptions& options) {
    const ModelFormat format = format_of(path);
    if (format == ModelFormat::onnx || format == ModelFormat::mxnet) return {};
    return tensorflow::summarize(read_tensorflow(path, format, options).graph);
}

Model load_model(const std::filesystem::path& path, const LoadOptions& options) {
    const ModelFormat format = format_of(path);
    const bool tensorflow = format == ModelFormat::graph_def || format == ModelFormat::saved_model;
    require(tensorflow || (options.inputs.empty() && options.outputs.empty()),
            "{}: inputs and outputs can be chosen for TensorFlow models only", path.string());
    require(format == ModelFormat::saved_model || options.signature.empty(),
            "{}: only SavedModel folders have signatures", path.string());
    require(format == ModelFormat::mxnet || options.shapes.empty(),
            "{}: shapes of inputs are told for MXNet models only", path.string());
    if (tensorflow) return load_tensorflow(path, format, options);
    if (format == ModelFormat::mxnet) return load_mxnet(path, options);
    return onnx::read(path);
}

}  // namespace kilter
