// Which nodes of a symbol become one integer operator: a convolution or product with what MXNet's oneDNN operators fuse into it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/mxnet/symbol.h"

namespace kilter::mxnet {

struct Group {
    size_t product = 0;  // Convolution or FullyConnected
    std::optional<size_t> batch_norm, sum, relu;
    std::optional<Entry> summand;  // what `sum` adds to the product
    size_t last = 0;               // the node whose output the group's is

    std::vector<size_t> nodes() const;
};

//! Groups in the order of their last nodes. A node is fused when nobody else reads what it takes.
std::vector<Group> find_groups(const Symbol& symbol);

//! As MXNet calls it: "sg_mkldnn_conv_bn_add_act_3".
std::string fused_name(const Symbol& symbol, const Group& group, size_t number);

bool is_convolution(const SymbolNode& node);

}  // namespace kilter::mxnet
