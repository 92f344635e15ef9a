#include "kilter/quantization/capabilities.h"

#include <fmt/format.h>

#include "quantization/names.h"

namespace kilter {
namespace {

constexpr Word<Precision> kPrecisions[] = {
    {Precision::int8, "int8"}, {Precision::bf16, "bf16"}, {Precision::f32, "f32"}};

using enum Role;
using enum Precision;

const std::vector<RangeAlgorithm> kAllAlgorithms{RangeAlgorithm::minmax, RangeAlgorithm::kl,
                                                 RangeAlgorithm::percentile, RangeAlgorithm::mse};
const std::vector<Scheme> kBoth{Scheme::asym, Scheme::sym};
const std::vector<Granularity> kEach{Granularity::per_channel, Granularity::per_tensor};

// A product or convolution: u8 activations, s8 weights.
Capability product(std::string_view op) {
    return {op, must, {int8, bf16, f32}, {DType::u8}, kBoth, kAllAlgorithms, {DType::i8}, kEach, 2};
}
Capability on_integers(std::string_view op, Role role) {
    return {op, role, {int8, f32}, {DType::u8}, kBoth, kAllAlgorithms, {}, {}, 0};
}

const std::vector<Capability>& all_rows() {
    static const std::vector<Capability> rows{
        product("Conv"),
        product("ConvTranspose"),
        product("MatMul"),
        // q is u8; k and v are second operands of products and therefore s8, symmetric.
        {"Attention", must, {int8, f32}, {DType::u8, DType::i8}, kBoth, kAllAlgorithms, {}, {}, 0},
        on_integers("Add", eligible),
        on_integers("Mul", eligible),
        on_integers("AveragePool", eligible),
        on_integers("GlobalAveragePool", eligible),
        on_integers("Relu", attached),
        on_integers("Clip", attached),
        on_integers("MaxPool", transparent),
        on_integers("GlobalMaxPool", transparent),
        on_integers("Concat", transparent),
        on_integers("Split", transparent),
        on_integers("Slice", transparent),
        on_integers("Gather", transparent),
        on_integers("Reshape", transparent),
        on_integers("Flatten", transparent),
        on_integers("Squeeze", transparent),
        on_integers("Unsqueeze", transparent),
        on_integers("Transpose", transparent),
        on_integers("Expand", transparent),
        on_integers("Tile", transparent),
        on_integers("Pad", transparent),
        on_integers("Resize", transparent),
        on_integers("DepthToSpace", transparent),
        on_integers("SpaceToDepth", transparent),
        {"Embedding", table, {int8, f32}, {}, {}, {}, {DType::i8}, kEach, 2},
    };
    return rows;
}

template <class List>
std::string joined(const List& list) {
    std::string text;
    for (const auto& entry : list) text += fmt::format("{}{}", text.empty() ? "" : " ", name(entry));
    return text.empty() ? "-" : text;
}

std::string_view role_word(Role role) {
    if (role == must) return "must";
    if (role == eligible) return "eligible";
    if (role == table) return "table";
    return role == attached ? "attached" : "transparent";
}

}  // namespace

std::string_view name(Precision precision) { return word_of(kPrecisions, precision); }
Precision precision(std::string_view name) {
    return name == "fp32" ? Precision::f32 : parse_word(kPrecisions, "precision", name);
}

std::span<const Capability> capabilities() { return all_rows(); }

const Capability* find_capability(std::string_view op) {
    const auto found = std::ranges::find(all_rows(), op, &Capability::op);
    return found == all_rows().end() ? nullptr : &*found;
}

std::string_view public_type(const Node& node) {
    if (!node.domain().empty() && node.domain() != kKilterDomain) return {};
    // The Attention of ONNX is another operator: it stays in floating point.
    if (node.is("Attention")) return {};
    if (node.is("Gather") && node.input(0)->is_constant() && node.input(0)->type.dtype == DType::f32)
        return "Embedding";
    return node.is("Gemm") ? std::string_view("MatMul") : std::string_view(node.op());
}

std::string capability_table() {
    std::string text = fmt::format("{:18} {:12} {:15} {:10} {:10} {:25} {:8} {}\n", "operator", "role",
                                   "precision", "reads", "scheme", "range", "weights", "granularity, bits");
    for (const Capability& row : all_rows()) {
        const std::string bits = row.weight_dtypes.empty() ? "" : fmt::format(", {}-8", row.min_weight_bits);
        text +=
            fmt::format("{:18} {:12} {:15} {:10} {:10} {:25} {:8} {}{}\n", row.op, role_word(row.role),
                        joined(row.precisions), joined(row.activation_dtypes), joined(row.activation_schemes),
                        joined(row.algorithms), joined(row.weight_dtypes), joined(row.granularities), bits);
    }
    return text;
}

}  // namespace kilter
