// Symbol: an MXNet "-symbol.json" in memory. Nodes are in topological order; every operator and attribute survives a
// round trip, known to kilter or not. Names of operators are unique: in a file they need not be.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kilter::mxnet {

//! Output `index` of node `node`.
struct Entry {
    size_t node = 0;
    size_t index = 0;
    bool operator==(const Entry&) const = default;
};

struct Symbol;

struct SymbolNode {
    std::string op;  // "null": a variable
    std::string name;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::vector<Entry> inputs;
    std::vector<Symbol> subgraphs;  // of operators that stand for a fused piece of a graph

    bool is_variable() const { return op == "null"; }
    //! Null when absent.
    const std::string* find(std::string_view attribute) const;
    std::string get(std::string_view attribute, std::string_view absent = {}) const;
    void set(std::string_view attribute, std::string value);
};

struct Symbol {
    std::vector<SymbolNode> nodes;
    std::vector<Entry> heads;  // outputs
    int64_t version = 0;       // of MXNet, 10901 for 1.9.1; 0 when the file does not tell

    //! Nodes that are variables.
    std::vector<size_t> variables() const;
};

//! Every call of a shared Gluon block comes under the same name; all but the first get a number: "conv0_fwd", "conv0_fwd_1".
//! Throws Error that names the file and what is wrong with it.
Symbol read_symbol(const std::filesystem::path& path);
Symbol parse_symbol(std::string_view json);

std::string to_json(const Symbol& symbol);

}  // namespace kilter::mxnet
