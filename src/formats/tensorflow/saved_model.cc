#include "formats/tensorflow/saved_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "formats/protobuf/fields.h"
#include "formats/tensorflow/freeze.h"
#include "formats/tensorflow/inline_functions.h"
#include "formats/tensorflow/messages.h"
#include "formats/tensorflow/schema.h"

#include <fmt/ranges.h>

namespace kilter::tensorflow {
namespace {

using protobuf::Fields;

struct TensorInfo {
    std::string name;  // in the graph
    TfType type;
};

struct SignatureParts {
    std::map<std::string, TensorInfo> inputs, outputs;  // by the signature's names
};

struct MetaGraph {
    std::string_view graph;
    std::set<std::string> tags;
    std::map<std::string, SignatureParts> signatures;
};

std::pair<std::string, std::string_view> map_entry(std::string_view message) {
    std::pair<std::string, std::string_view> entry;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Entry::key)
            entry.first = fields.text();
        else if (fields.number() == field::Entry::value)
            entry.second = fields.view();
        else
            fields.skip();
    }
    return entry;
}

TensorInfo parse_tensor_info(std::string_view message) {
    TensorInfo info;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::TensorInfo::name)
            info.name = fields.text();
        else if (fields.number() == field::TensorInfo::dtype)
            info.type = {fields.integer()};
        else
            fields.skip();
    }
    return info;
}

SignatureParts parse_signature(std::string_view message) {
    SignatureParts parts;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::Signature::inputs) {
            const auto [name, info] = map_entry(fields.view());
            parts.inputs[name] = parse_tensor_info(info);
        } else if (fields.number() == field::Signature::outputs) {
            const auto [name, info] = map_entry(fields.view());
            parts.outputs[name] = parse_tensor_info(info);
        } else {
            fields.skip();
        }
    }
    return parts;
}

MetaGraph parse_meta_graph(std::string_view message) {
    MetaGraph meta;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field::MetaGraph::graph_def) {
            meta.graph = fields.view();
        } else if (fields.number() == field::MetaGraph::signature_def) {
            const auto [name, signature] = map_entry(fields.view());
            meta.signatures[name] = parse_signature(signature);
        } else if (fields.number() == field::MetaGraph::meta_info) {
            for (Fields info(fields.view()); info.next();) {
                if (info.number() == field::MetaInfo::tags)
                    meta.tags.insert(info.text());
                else
                    info.skip();
            }
        } else {
            fields.skip();
        }
    }
    return meta;
}

// The graph for serving; the only one when none is tagged so.
MetaGraph choose_meta_graph(std::string_view file) {
    std::vector<MetaGraph> metas;
    for (Fields fields(file); fields.next();) {
        if (fields.number() == field::SavedModel::meta_graphs)
            metas.push_back(parse_meta_graph(fields.view()));
        else
            fields.skip();
    }
    require(!metas.empty(), "there is no graph in it");
    const auto serving =
        std::ranges::find_if(metas, [](const MetaGraph& meta) { return meta.tags.contains("serve"); });
    return serving == metas.end() ? metas.front() : *serving;
}

const SignatureParts& choose_signature(const MetaGraph& meta, const std::string& wanted) {
    std::vector<std::string> names;
    for (const auto& [name, parts] : meta.signatures)
        if (!parts.outputs.empty() && !name.starts_with("__saved_model")) names.push_back(name);
    const std::string hint = fmt::format("its signatures are {}", fmt::join(names, ", "));
    const auto found = meta.signatures.find(wanted.empty() ? "serving_default" : wanted);
    if (found != meta.signatures.end()) return found->second;
    if (!wanted.empty()) throw Error(fmt::format("there is no signature '{}'", wanted), hint);
    if (names.size() == 1) return meta.signatures.at(names[0]);
    if (names.empty()) fail("there are no signatures, so nothing says what its inputs and outputs are");
    throw Error("there is no signature 'serving_default', and more than one other", hint);
}

// Gives the tensors of a signature its names, where they are free.
std::vector<std::string> name_inputs(TfGraph& graph, const std::map<std::string, TensorInfo>& tensors) {
    std::vector<std::string> names;
    for (const auto& [name, info] : tensors) {
        const TfInput tensor(info.name);
        TfNode* node = graph.producer(tensor);
        require(node != nullptr, "input '{}' of the signature is tensor '{}', which does not exist", name,
                info.name);
        if (node->op == "Placeholder" && tensor.port == 0 && graph.find(name) == nullptr) {
            graph.rename(*node, name);
            names.push_back(name);
        } else {
            names.push_back(tensor.text());
        }
    }
    return names;
}

std::vector<std::string> name_outputs(TfGraph& graph, const std::map<std::string, TensorInfo>& tensors) {
    std::vector<std::string> names;
    for (const auto& [name, info] : tensors) {
        const TfInput tensor(info.name);
        const TfNode* node = graph.find(name);
        if (node == nullptr) {
            graph.add(name, "Identity", {tensor}).attributes.set("T", info.type);
            names.push_back(name);
        } else {
            names.push_back(tensor.text());
        }
    }
    return names;
}

}  // namespace

SavedModel read_saved_model(const std::filesystem::path& path, const std::string& signature) {
    const bool is_file = path.filename() == "saved_model.pb";
    const std::filesystem::path folder = is_file ? path.parent_path() : path;
    const std::filesystem::path file_path = folder / "saved_model.pb";
    std::error_code ignored;
    if (!std::filesystem::exists(file_path, ignored))
        throw Error(fmt::format("{}: there is no saved_model.pb in this folder", folder.string()));
    const auto file = MappedFile::open(file_path);
    try {
        const MetaGraph meta =
            choose_meta_graph({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
        const SignatureParts parts = choose_signature(meta, signature);
        SavedModel saved;
        saved.graph = read_graph(meta.graph, file);
        check(saved.graph);
        // Outputs are held by name before calls are inlined: a node of their own follows its input.
        saved.inputs = name_inputs(saved.graph, parts.inputs);
        saved.outputs = name_outputs(saved.graph, parts.outputs);
        inline_functions(saved.graph);
        freeze_variables(saved.graph, folder / "variables" / "variables", saved.outputs);
        check(saved.graph);
        saved.graph.source = path.string();
        return saved;
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

}  // namespace kilter::tensorflow
