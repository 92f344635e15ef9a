#include "formats/mxnet/input_types.h"

#include <algorithm>
#include <array>

#include "formats/mxnet/parameters.h"

namespace kilter::mxnet {
namespace {

// They keep the shape of their first input.
constexpr std::array<std::string_view, 22> kKeepShape{
    "BatchNorm",     "BatchNorm_v1", "Dropout",       "_copy",         "identity",      "Cast",
    "cast",          "amp_cast",     "clip",          "relu",          "Activation",    "_plus_scalar",
    "_minus_scalar", "_mul_scalar",  "_div_scalar",   "broadcast_add", "broadcast_sub", "broadcast_mul",
    "broadcast_div", "BlockGrad",    "stop_gradient", "_power_scalar"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

// The dimensions of what a convolution reads.
std::optional<Dims> read_by(const SymbolNode& node, const Symbol& symbol,
                            const std::unordered_map<std::string, Tensor>& arrays) {
    const Parameters parameters(node);
    const size_t spatial = parameters.integers("kernel").size();
    if (spatial < 1 || spatial > 3 || node.inputs.size() < 2) return std::nullopt;
    const bool last = parameters.text("layout", "NCHW").ends_with('C');
    const auto weights = arrays.find(symbol.nodes[node.inputs[1].node].name);
    Dim channels;
    if (weights != arrays.end() && weights->second.rank() == static_cast<int>(spatial) + 2)
        channels = weights->second.dim(last ? -1 : 1) * parameters.integer("num_group", 1);
    Dims dims{Dim("batch")};
    if (!last) dims.push_back(channels);
    constexpr std::array<std::string_view, 3> kNames{"height", "width", "depth"};
    for (size_t i = 0; i < spatial; ++i) dims.emplace_back(std::string(kNames[i]));
    if (last) dims.push_back(channels);
    return dims;
}

std::optional<Dims> guessed(const Symbol& symbol, size_t variable,
                            const std::unordered_map<std::string, Tensor>& arrays) {
    std::vector<bool> same(symbol.nodes.size(), false);  // has the shape of the variable
    same[variable] = true;
    for (size_t i = variable + 1; i < symbol.nodes.size(); ++i) {
        const SymbolNode& node = symbol.nodes[i];
        if (node.inputs.empty() || !same[node.inputs[0].node] || node.inputs[0].index != 0) continue;
        if (node.op == "Convolution") return read_by(node, symbol, arrays);
        same[i] = contains(kKeepShape, node.op);
    }
    return std::nullopt;
}

}  // namespace

ValueType input_type(const Symbol& symbol, size_t variable,
                     const std::unordered_map<std::string, Tensor>& arrays) {
    const Parameters parameters(symbol.nodes[variable]);
    ValueType type;
    type.dtype = parameters.dtype("__dtype__", DType::f32);
    if (parameters.has("__shape__")) {
        // 0 and -1 stand for what is not known.
        Dims dims;
        for (const int64_t dim : parameters.integers("__shape__"))
            dims.push_back(dim > 0 ? Dim(dim) : dims.empty() ? Dim("batch") : Dim());
        if (!dims.empty()) type.shape = std::move(dims);
    }
    if (!type.shape) type.shape = guessed(symbol, variable, arrays);
    return type;
}

bool is_label(const Symbol& symbol, size_t variable) {
    constexpr std::array<std::string_view, 6> kOutputs{"SoftmaxOutput",          "Softmax",
                                                       "LinearRegressionOutput", "LogisticRegressionOutput",
                                                       "MAERegressionOutput",    "SVMOutput"};
    bool read = false;
    for (const SymbolNode& node : symbol.nodes)
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (node.inputs[i].node != variable) continue;
            if (i != 1 || !contains(kOutputs, node.op)) return false;
            read = true;
        }
    return read;
}

}  // namespace kilter::mxnet
