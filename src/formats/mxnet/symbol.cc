#include "formats/mxnet/symbol.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/mapped_file.h"

namespace kilter::mxnet {
namespace {

using Json = nlohmann::ordered_json;

// nlohmann's parser keeps a stack of its own on the heap, but building and destroying the tree goes one call deeper for every level.
constexpr int kDeepest = 64;

const Json& member(const Json& object, const char* name, const std::string& where) {
    const auto found = object.find(name);
    require(found != object.end(), "{} has no \"{}\"", where, name);
    return *found;
}

size_t number(const Json& json, const std::string& where) {
    require(json.is_number_unsigned() || (json.is_number_integer() && json.get<int64_t>() >= 0),
            "{} must be a number that is not negative, found {}", where, json.dump().substr(0, 40));
    return json.get<size_t>();
}

const Json& array(const Json& json, const std::string& where) {
    require(json.is_array(), "{} must be a list, found {}", where, json.type_name());
    return json;
}

std::string text(const Json& json, const std::string& where) {
    require(json.is_string(), "{} must be text, found {}", where, json.type_name());
    return json.get<std::string>();
}

// [node, output, version]; files of MXNet before 0.9 leave the version out.
Entry read_entry(const Json& json, size_t count, const std::string& where) {
    require(json.is_array() && json.size() >= 2, "{} must be [node, output], found {}", where,
            json.dump().substr(0, 40));
    const Entry entry{number(json[0], where), number(json[1], where)};
    require(entry.node < count, "{} names node {}, but there are {}", where, entry.node, count);
    return entry;
}

Symbol read_graph(const Json& json, int depth);

SymbolNode read_node(const Json& json, size_t index, int depth) {
    const std::string where = fmt::format("node {}", index);
    require(json.is_object(), "{} must be an object, found {}", where, json.type_name());
    SymbolNode node;
    node.op = text(member(json, "op", where), where + ": op");
    node.name = text(member(json, "name", where), where + ": name");
    const std::string named = fmt::format("node {} '{}'", index, node.name);
    // "param" held what the operator is told and "attr" the rest before 1.0.
    for (const char* key : {"attrs", "param", "attr"}) {
        const auto found = json.find(key);
        if (found == json.end()) continue;
        require(found->is_object(), "{}: {} must be an object, found {}", named, key, found->type_name());
        for (const auto& [name, value] : found->items())
            node.set(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
    for (const Json& input : array(member(json, "inputs", named), named + ": inputs")) {
        // Nodes are written after what they read; anything else would be a cycle, or nothing.
        node.inputs.push_back(read_entry(input, index, named + ": inputs"));
    }
    if (const auto found = json.find("subgraphs"); found != json.end())
        for (const Json& entry : array(*found, named + ": subgraphs"))
            node.subgraphs.push_back(read_graph(entry, depth + 1));
    return node;
}

int64_t read_version(const Json& json) {
    // {"attrs": {"mxnet_version": ["int", 10901]}}
    const auto attributes = json.find("attrs");
    if (attributes == json.end() || !attributes->is_object()) return 0;
    const auto version = attributes->find("mxnet_version");
    if (version == attributes->end() || !version->is_array() || version->size() != 2) return 0;
    return (*version)[1].is_number_integer() ? (*version)[1].get<int64_t>() : 0;
}

// Variables keep their names: two of one name are one array.
void make_names_unique(Symbol& symbol) {
    std::unordered_set<std::string> given, taken;
    for (const SymbolNode& node : symbol.nodes)
        if (!node.is_variable()) given.insert(node.name);
    std::unordered_map<std::string, size_t> numbers;  // the last one, by name
    for (SymbolNode& node : symbol.nodes) {
        if (node.is_variable() || taken.insert(node.name).second) continue;
        const std::string name = node.name;
        do {
            node.name = fmt::format("{}_{}", name, ++numbers[name]);
        } while (given.contains(node.name) || !taken.insert(node.name).second);
    }
}

Symbol read_graph(const Json& json, int depth) {
    require(depth < kDeepest, "sub-graphs are nested deeper than {}", kDeepest);
    require(json.is_object(), "a symbol is a JSON object, found {}", json.type_name());
    Symbol symbol;
    const Json& nodes = array(member(json, "nodes", "the symbol"), "nodes");
    symbol.nodes.reserve(nodes.size());
    for (const Json& node : nodes) symbol.nodes.push_back(read_node(node, symbol.nodes.size(), depth));
    for (const Json& head : array(member(json, "heads", "the symbol"), "heads"))
        symbol.heads.push_back(read_entry(head, symbol.nodes.size(), "heads"));
    make_names_unique(symbol);
    symbol.version = read_version(json);
    return symbol;
}

Json write_graph(const Symbol& symbol) {
    Json nodes = Json::array(), arguments = Json::array(), heads = Json::array();
    for (const SymbolNode& node : symbol.nodes) {
        if (node.is_variable()) arguments.push_back(nodes.size());
        Json entry{{"op", node.op}, {"name", node.name}};
        if (!node.attributes.empty()) {
            Json& attributes = entry["attrs"] = Json::object();
            for (const auto& [name, value] : node.attributes) attributes[name] = value;
        }
        Json& inputs = entry["inputs"] = Json::array();
        for (const Entry& input : node.inputs) inputs.push_back({input.node, input.index, 0});
        for (const Symbol& subgraph : node.subgraphs) entry["subgraphs"].push_back(write_graph(subgraph));
        nodes.push_back(std::move(entry));
    }
    for (const Entry& head : symbol.heads) heads.push_back({head.node, head.index, 0});
    Json json{{"nodes", std::move(nodes)}, {"arg_nodes", std::move(arguments)}, {"heads", std::move(heads)}};
    if (symbol.version != 0) json["attrs"] = {{"mxnet_version", {"int", symbol.version}}};
    return json;
}

// How deep brackets nest, without building anything.
void check_depth(std::string_view json) {
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        if (quoted && c == '\\')
            ++i;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{'))
            require(++depth < 8 * kDeepest, "nested too deeply");
        else if (!quoted && (c == ']' || c == '}'))
            --depth;
    }
}

}  // namespace

const std::string* SymbolNode::find(std::string_view attribute) const {
    const auto found = std::ranges::find(attributes, attribute, &std::pair<std::string, std::string>::first);
    return found == attributes.end() ? nullptr : &found->second;
}

std::string SymbolNode::get(std::string_view attribute, std::string_view absent) const {
    const std::string* found = find(attribute);
    return found == nullptr ? std::string(absent) : *found;
}

void SymbolNode::set(std::string_view attribute, std::string value) {
    const auto found = std::ranges::find(attributes, attribute, &std::pair<std::string, std::string>::first);
    if (found == attributes.end())
        attributes.emplace_back(attribute, std::move(value));
    else
        found->second = std::move(value);
}

std::vector<size_t> Symbol::variables() const {
    std::vector<size_t> found;
    for (size_t i = 0; i < nodes.size(); ++i)
        if (nodes[i].is_variable()) found.push_back(i);
    return found;
}

Symbol parse_symbol(std::string_view json) {
    check_depth(json);
    try {
        Symbol symbol = read_graph(Json::parse(json), 0);
        require(!symbol.heads.empty(), "the symbol has no outputs");
        return symbol;
    } catch (const Json::exception& error) {
        // The library's words start with its own error number in brackets.
        const std::string_view what = error.what();
        const size_t end = what.find("] ");
        fail("this is not an MXNet symbol: {}", end == what.npos ? what : what.substr(end + 2));
    }
}

Symbol read_symbol(const std::filesystem::path& path) {
    const auto file = MappedFile::open(path);
    try {
        return parse_symbol({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

std::string to_json(const Symbol& symbol) { return write_graph(symbol).dump(2) + "\n"; }

}  // namespace kilter::mxnet
