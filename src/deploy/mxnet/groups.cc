#include "deploy/mxnet/groups.h"

#include <algorithm>
#include <array>

#include "formats/mxnet/parameters.h"

namespace kilter::mxnet {
namespace {

// Readers of every node, and whether the symbol returns it.
class Readers {
  public:
    explicit Readers(const Symbol& symbol) : symbol_(symbol), readers_(symbol.nodes.size()) {
        for (size_t i = 0; i < symbol.nodes.size(); ++i)
            for (const Entry& input : symbol.nodes[i].inputs) readers_[input.node].push_back(i);
        for (const Entry& head : symbol.heads) readers_[head.node].push_back(symbol.nodes.size());
    }

    //! The only node that reads it, once.
    const SymbolNode* sole(size_t node, size_t* place) const {
        if (readers_[node].size() != 1 || readers_[node][0] == symbol_.nodes.size()) return nullptr;
        *place = readers_[node][0];
        return &symbol_.nodes[*place];
    }

  private:
    const Symbol& symbol_;
    std::vector<std::vector<size_t>> readers_;
};

bool is_relu(const SymbolNode& node) {
    return node.op == "relu" || (node.op == "Activation" && node.get("act_type") == "relu");
}

// Both sides have the same shape; broadcast_add may be something else.
bool is_sum(const SymbolNode& node) {
    return node.op == "elemwise_add" || node.op == "_plus" || node.op == "_Plus" || node.op == "_grad_add";
}

bool is_product(const SymbolNode& node) { return is_convolution(node) || node.op == "FullyConnected"; }

Group grow(const Symbol& symbol, const Readers& readers, size_t product, std::vector<bool>& taken) {
    Group group;
    group.product = product;
    group.last = product;
    const auto take = [&](std::optional<size_t>& part, size_t place) {
        part = place;
        group.last = place;
        taken[place] = true;
    };
    const auto next = [&](size_t* place) -> const SymbolNode* {
        const SymbolNode* node = readers.sole(group.last, place);
        return node != nullptr && !taken[*place] ? node : nullptr;
    };
    const bool convolution = is_convolution(symbol.nodes[product]);
    size_t place = 0;
    const SymbolNode* node = next(&place);
    if (convolution && node != nullptr && (node->op == "BatchNorm" || node->op == "BatchNorm_v1") &&
        node->inputs.size() == 5 && node->inputs[0].node == group.last &&
        Parameters(*node).integer("axis", 1) == 1) {
        take(group.batch_norm, place);
        node = next(&place);
    }
    if (convolution && node != nullptr && is_sum(*node) && node->inputs.size() == 2) {
        const Entry other = node->inputs[node->inputs[0].node == group.last ? 1 : 0];
        take(group.sum, place);
        group.summand = other;
        node = next(&place);
    }
    if (node != nullptr && is_relu(*node)) take(group.relu, place);
    return group;
}

}  // namespace

bool is_convolution(const SymbolNode& node) {
    const Parameters parameters(node);
    return node.op == "Convolution" && parameters.integers("kernel").size() == 2 &&
           parameters.text("layout", "NCHW") == "NCHW";
}

std::vector<size_t> Group::nodes() const {
    std::vector<size_t> all{product};
    for (const std::optional<size_t>& part : {batch_norm, sum, relu})
        if (part) all.push_back(*part);
    return all;
}

std::vector<Group> find_groups(const Symbol& symbol) {
    const Readers readers(symbol);
    std::vector<bool> taken(symbol.nodes.size(), false);
    std::vector<Group> groups;
    // Of two convolutions that are added the later one takes the sum: the other's result is there by then.
    for (size_t i = symbol.nodes.size(); i-- > 0;)
        if (is_product(symbol.nodes[i])) groups.push_back(grow(symbol, readers, i, taken));
    std::ranges::sort(groups, {}, &Group::last);
    return groups;
}

std::string fused_name(const Symbol& symbol, const Group& group, size_t number) {
    const bool convolution = is_convolution(symbol.nodes[group.product]);
    std::string name = convolution ? "sg_mkldnn_conv" : "sg_mkldnn_fully_connected";
    if (group.batch_norm) name += "_bn";
    if (group.sum) name += "_add";
    if (group.relu) name += convolution ? "_act" : "_eltwise";
    return name + "_" + std::to_string(number);
}

}  // namespace kilter::mxnet
