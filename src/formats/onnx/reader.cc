// Reads ONNX models: the ModelProto around the graph, from a mapped file or from memory.
#include "base/fail.h"
#include "base/mapped_file.h"
#include "formats/onnx/graph_reader.h"
#include "formats/onnx/schema.h"
#include "formats/onnx/tensor_reader.h"
#include "formats/protobuf/fields.h"
#include "kilter/formats/onnx.h"

namespace kilter::onnx {

using protobuf::Fields;

namespace {

Model read_model(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                 std::optional<std::filesystem::path> directory) {
    require(!bytes.empty(), "the file is empty");
    TensorReader tensors(std::move(keeper), std::move(directory));
    GraphReader graphs(tensors);
    Model model;
    model.ir_version = 0;
    bool has_graph = false;
    for (Fields fields({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); fields.next();) {
        switch (fields.number()) {
            case field::Model::ir_version:
                model.ir_version = fields.integer();
                break;
            case field::Model::producer_name:
                model.producer_name = fields.text();
                break;
            case field::Model::producer_version:
                model.producer_version = fields.text();
                break;
            case field::Model::domain:
                model.domain = fields.text();
                break;
            case field::Model::model_version:
                model.model_version = fields.integer();
                break;
            case field::Model::doc_string:
                model.doc = fields.text();
                break;
            case field::Model::graph:
                require(!has_graph, "the model has more than one graph");
                model.graph = graphs.read_graph(fields.view());
                has_graph = true;
                break;
            case field::Model::opset_import:
                model.opsets.push_back(read_opset(fields.view()));
                break;
            case field::Model::metadata_props:
                model.metadata.push_back(read_entry(fields.view()));
                break;
            case field::Model::functions:
                model.functions.push_back(graphs.read_function(fields.view()));
                break;
            default:
                fields.keep(model.foreign);
        }
    }
    require(has_graph, "the file holds no graph: it is not an ONNX model, or it is truncated");
    return model;
}

}  // namespace

Model read(const std::filesystem::path& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    try {
        Model model = read_model(file->bytes(), file, path.parent_path());
        model.source = path.string();
        return model;
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

Model read_bytes(std::span<const std::byte> bytes, const std::filesystem::path& base_directory) {
    const auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    try {
        std::optional<std::filesystem::path> directory;
        if (!base_directory.empty()) directory = base_directory;
        Model model = read_model(*copy, copy, std::move(directory));
        model.source = "model in memory";
        return model;
    } catch (const Error& error) {
        throw error.in("model in memory");
    }
}

}  // namespace kilter::onnx
