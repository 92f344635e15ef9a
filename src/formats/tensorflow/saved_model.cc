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

// A tensor of a signature. Nodes are held, not names: those change.
struct Signed {
    std::string name;
    TfNode* node;
    int port;
    TfType type;
};

std::vector<Signed> find_tensors(TfGraph& graph, const std::map<std::string, TensorInfo>& tensors,
                                 std::string_view what) {
    std::vector<Signed> found;
    for (const auto& [name, info] : tensors) {
        const TfInput tensor(info.name);
        TfNode* node = graph.producer(tensor);
        require(node != nullptr, "{} '{}' of the signature is tensor '{}', which does not exist", what, name,
                info.name);
        found.push_back({name, node, tensor.port, info.type});
    }
    return found;
}

// Signatures may call their tensors anything, TensorFlow's nodes have plain names.
std::string plain(std::string name) {
    constexpr std::string_view kInside = "_./-";
    const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    for (char& c : name)
        if (!letter(c) && kInside.find(c) == std::string_view::npos) c = '_';
    return name.empty() || (!letter(name[0]) && name[0] != '.') ? "tensor" + name : name;
}

bool can_be_taken(const TfGraph& graph, const std::string& name) {
    return plain(name) == name && graph.find(name) == nullptr;
}

std::string text_of(const Signed& tensor) { return TfInput::of(tensor.node->name, tensor.port).text(); }

// Gives the tensors of a signature its names, where that is possible.
void name_inputs(TfGraph& graph, const std::vector<Signed>& inputs) {
    std::set<const TfNode*> named;
    for (const Signed& input : inputs)
        if (input.node->op == "Placeholder" && input.port == 0 && can_be_taken(graph, input.name) &&
            named.insert(input.node).second)
            graph.rename(*input.node, input.name);
}

// A node of their own follows what it reads when calls are inlined.
std::vector<std::string> name_outputs(TfGraph& graph, const std::vector<Signed>& outputs) {
    std::vector<std::string> names;
    for (const Signed& output : outputs) {
        if (output.node->name == output.name && output.port == 0 && !is_call(graph, *output.node)) {
            names.push_back(output.name);
            continue;
        }
        std::string name = graph.fresh_name(plain(output.name));
        graph.add(name, "Identity", {TfInput(text_of(output))}).attributes.set("T", output.type);
        names.push_back(std::move(name));
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
        const std::vector<Signed> inputs = find_tensors(saved.graph, parts.inputs, "input");
        const std::vector<Signed> outputs = find_tensors(saved.graph, parts.outputs, "output");
        name_inputs(saved.graph, inputs);
        for (const Signed& input : inputs) saved.inputs.push_back(text_of(input));
        saved.outputs = name_outputs(saved.graph, outputs);
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
