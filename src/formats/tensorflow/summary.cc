#include "formats/tensorflow/summary.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace kilter::tensorflow {
namespace {

std::string input_line(const TfNode& node) {
    const TfType type = node.attributes.get_type("dtype");
    const TfShape shape = node.attributes.get_shape("shape");
    return fmt::format("(name={}, type={}({}), shape={})\n", node.name, to_string(type), type.code,
                       shape.dims ? to_string(shape) : "None");
}

}  // namespace

std::string summarize(const TfGraph& graph) {
    std::set<std::string_view> read;
    std::map<std::string, size_t> counts;
    for (const auto& node : graph.nodes()) {
        ++counts[node->op];
        for (const TfInput& input : node->inputs) read.insert(input.node);
    }
    std::string inputs;
    std::string outputs;
    size_t input_count = 0;
    size_t output_count = 0;
    for (const auto& node : graph.nodes()) {
        if (node->op == "Placeholder") {
            inputs += input_line(*node);
            ++input_count;
        }
        if (read.contains(node->name) || node->op == "Const" || node->op == "Assign" || node->op == "NoOp")
            continue;
        outputs += fmt::format("(name={}, op={})\n", node->name, node->op);
        ++output_count;
    }
    std::vector<std::pair<std::string, size_t>> kinds(counts.begin(), counts.end());
    std::ranges::stable_sort(kinds, std::greater(), &std::pair<std::string, size_t>::second);
    std::string used;
    for (const auto& [op, count] : kinds) used += fmt::format("{}  {} , ", count, op);
    return fmt::format("Found  {}  possible inputs: \n{}Found  {}  possible outputs: \n{}Op types used: {}\n",
                       input_count, inputs, output_count, outputs, used);
}

}  // namespace kilter::tensorflow
