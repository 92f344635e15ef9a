// Pad with zeros moves into the padding of the convolution or average pooling behind it.
#include <algorithm>

#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

// Zeros that Pad puts before and after every spatial axis; nothing when it does anything else.
std::optional<std::vector<int64_t>> spatial_zeros(const Graph& graph, const Node& pad) {
    if (pad.attributes.get_string("mode", "constant") != "constant") return std::nullopt;
    if (pad.input(2) != nullptr && scalar_of(graph, pad.input(2)) != 0.0) return std::nullopt;
    const int rank = rank_of(pad.input(0));
    const auto given = int_constants(graph, pad.input(1));
    if (rank < 3 || !given) return std::nullopt;
    const auto size = static_cast<size_t>(rank);
    std::vector<int64_t> all_axes(size);
    for (size_t i = 0; i < size; ++i) all_axes[i] = static_cast<int64_t>(i);
    const auto axes = int_constants(graph, pad.input(3), all_axes);
    if (!axes || given->size() != 2 * axes->size()) return std::nullopt;
    std::vector<int64_t> full(2 * size, 0);
    for (size_t i = 0; i < axes->size(); ++i) {
        const auto axis = static_cast<size_t>((*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i]);
        if (axis >= size) return std::nullopt;
        full[axis] = (*given)[i];
        full[axis + size] = (*given)[i + axes->size()];
    }
    if (std::ranges::any_of(full, [](int64_t count) { return count < 0; })) return std::nullopt;
    if (full[0] != 0 || full[1] != 0 || full[size] != 0 || full[size + 1] != 0) return std::nullopt;
    std::vector<int64_t> spatial(full.begin() + 2, full.begin() + rank);
    spatial.insert(spatial.end(), full.begin() + rank + 2, full.end());
    return spatial;
}

// An average counts the zeros of Pad, so it must count its own padding too.
bool may_pad_pooling(const Node& pool, const std::vector<int64_t>& pads, const std::vector<int64_t>& sum) {
    if (pool.attributes.get_int("ceil_mode") != 0) return false;
    const bool own = std::ranges::any_of(pads, [](int64_t count) { return count != 0; });
    if (own && pool.attributes.get_int("count_include_pad") == 0) return false;
    const auto kernel = pool.attributes.get_ints("kernel_shape");
    if (2 * kernel.size() != sum.size()) return false;
    for (size_t i = 0; i < sum.size(); ++i)
        if (sum[i] >= kernel.at(i % kernel.size())) return false;  // a window of padding alone is not allowed
    return true;
}

}  // namespace

//! Needs constant, non-negative padding of spatial axes only. Other readers of the padded value keep the Pad.
bool fuse_pad(Graph& graph) {
    return rewrite(graph, {"Conv", "kilter.Conv", "AveragePool"}, [](Graph& g, Node& node) {
        const Node* pad = produced_by(node.input(0), "Pad");
        const std::string automatic = node.attributes.get_string("auto_pad", "NOTSET");
        if (pad == nullptr || (automatic != "NOTSET" && automatic != "VALID")) return false;
        const auto zeros = spatial_zeros(g, *pad);
        if (!zeros) return false;
        std::vector<int64_t> pads(zeros->size(), 0);
        if (automatic == "NOTSET") pads = node.attributes.get_ints("pads", pads);
        if (pads.size() != zeros->size()) return false;
        std::vector<int64_t> sum(pads.size());
        std::ranges::transform(pads, *zeros, sum.begin(), std::plus<>());
        if (node.is("AveragePool")) {
            if (!may_pad_pooling(node, pads, sum)) return false;
            node.attributes.set("count_include_pad", int64_t{1});
        }
        node.attributes.erase("auto_pad");
        node.attributes.set("pads", sum);
        add_origins(node, *pad);
        g.set_input(node, 0, pad->input(0));
        return true;
    });
}

}  // namespace kilter
