// Writes ONNX models: the ModelProto around the graph, as a file (with external data where needed) or as
// bytes.
#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "base/output_file.h"
#include "formats/onnx/graph_writer.h"
#include "formats/onnx/schema.h"
#include "kilter/formats/onnx.h"

namespace kilter::onnx {
namespace {

// What protobuf libraries accept; larger models keep their weights outside.
constexpr size_t kMaxMessage = std::numeric_limits<int32_t>::max();

// Before this IR version every initializer had to be listed as an input.
constexpr int64_t kInitializersApart = 4;

bool uses_domain(const Graph& graph, std::string_view domain) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
        if (node->domain() == domain) return true;
        const std::vector<Graph*> bodies = node->subgraphs();
        return std::any_of(bodies.begin(), bodies.end(),
                           [&](const Graph* body) { return uses_domain(*body, domain); });
    });
}

Message write_model(const Model& model, ExternalData* external) {
    const GraphWriter writer(external, model.ir_version < kInitializersApart);
    Message message;
    message.integer(field::Model::ir_version, model.ir_version);
    message.text(field::Model::producer_name, model.producer_name);
    message.text(field::Model::producer_version, model.producer_version);
    message.text(field::Model::domain, model.domain);
    if (model.model_version != 0) message.integer(field::Model::model_version, model.model_version);
    message.text(field::Model::doc_string, model.doc);
    message.message(field::Model::graph, writer.write_graph(model.graph));
    for (const auto& [domain, version] : model.opsets)
        message.message(field::Model::opset_import, write_opset(domain, version));
    if (model.opset(kKilterDomain) == 0 && uses_domain(model.graph, kKilterDomain))
        message.message(field::Model::opset_import, write_opset(std::string(kKilterDomain), 1));
    for (const auto& [key, value] : model.metadata) {
        Message entry;
        entry.bytes(field::Entry::key, key);
        entry.bytes(field::Entry::value, value);
        message.message(field::Model::metadata_props, entry);
    }
    for (const Function& function : model.functions)
        message.message(field::Model::functions, writer.write_function(function));
    message.verbatim(model.foreign);
    return message;
}

}  // namespace

void write(const Model& model, const std::filesystem::path& path, const WriteOptions& options) {
    try {
        ExternalData external(path.filename().string() + ".data", options.external_threshold);
        Message message = write_model(model, options.external_data ? &external : nullptr);
        if (message.size() > kMaxMessage) {
            external.with_attributes = true;
            message = write_model(model, &external);
        }
        require(message.size() <= kMaxMessage,
                "the model has {} bytes without its weights; ONNX files hold at most {}", message.size(),
                kMaxMessage);
        OutputFile file(path);
        message.visit([&](const void* data, size_t size) { file.write(data, size); });
        if (!external.empty()) {
            OutputFile data(path.parent_path() / external.location());
            external.write(data);
            file.sync();
            data.commit();
        }
        file.commit();
    } catch (const Error& error) {
        const std::string place = path.string() + ": ";
        throw std::string_view(error.what()).starts_with(place) ? error : error.in(path.string());
    }
}

std::string write_bytes(const Model& model) {
    const Message message = write_model(model, nullptr);
    require(message.size() <= kMaxMessage,
            "the model has {} bytes; write it to a file, which can hold weights over {} bytes",
            message.size(), kMaxMessage);
    return message.str();
}

}  // namespace kilter::onnx
