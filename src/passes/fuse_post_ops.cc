// Residual additions, gates and activations behind a convolution or matrix product become its post-ops.
#include <limits>

#include "ops/post_ops.h"
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

// oneDNN takes 32; a chain that long would be an accident, and every operand is one more stream to read.
constexpr size_t kMaxPostOps = 16;

std::optional<PostOp> clip_post_op(const Graph& graph, const Node& clip) {
    const auto limit = [&](size_t index, double absent) {
        return clip.input(index) == nullptr ? std::optional(absent) : scalar_of(graph, clip.input(index));
    };
    const auto low = limit(1, std::numeric_limits<float>::lowest());
    const auto high = limit(2, std::numeric_limits<float>::max());
    if (!low || !high || *low > *high) return std::nullopt;
    return PostOp{"clip", static_cast<float>(*low), static_cast<float>(*high)};
}

std::optional<PostOp> unary_post_op(const Graph& graph, const Node& node) {
    const auto real = [&](std::string_view attribute, float absent) {
        return node.attributes.get_float(attribute, absent);
    };
    if (node.is("Relu")) return PostOp{"relu"};
    if (node.is("LeakyRelu")) return PostOp{"leaky_relu", real("alpha", 0.01F)};
    if (node.is("PRelu")) {
        const auto slope = scalar_beside(graph, node.input(1), node.input(0));
        return slope ? std::optional(PostOp{"leaky_relu", static_cast<float>(*slope)}) : std::nullopt;
    }
    if (node.is("Clip")) return clip_post_op(graph, node);
    if (node.is("Sigmoid")) return PostOp{"sigmoid"};
    if (node.is("Tanh")) return PostOp{"tanh"};
    if (node.is("Gelu"))
        return PostOp{node.attributes.get_string("approximate", "none") == "tanh" ? "gelu_tanh" : "gelu_erf"};
    if (node.is("Swish")) return PostOp{"swish", real("alpha", 1.0F)};
    if (node.is("HardSwish")) return PostOp{"hard_swish"};
    if (node.is("HardSigmoid")) return PostOp{"hard_sigmoid", real("alpha", 0.2F), real("beta", 0.5F)};
    if (node.is("Elu")) return PostOp{"elu", real("alpha", 1.0F)};
    if (node.is("Mish")) return PostOp{"mish"};
    if (node.is("Exp")) return PostOp{"exp"};
    if (node.is("Abs")) return PostOp{"abs"};
    if (node.is("Sqrt")) return PostOp{"sqrt"};
    if (node.is("Neg")) return PostOp{"linear", -1.0F};
    return std::nullopt;
}

// Arithmetic of `y` with a scalar constant as alpha·y + beta.
std::optional<PostOp> linear_post_op(const Graph& graph, const Node& node, const Value* y) {
    const Value* other = other_input(node, y);
    const auto number = other == nullptr ? std::nullopt : scalar_beside(graph, other, y);
    if (!number) return std::nullopt;
    const auto c = static_cast<float>(*number);
    const bool y_first = node.input(0) == y;
    if (node.is("Mul")) return PostOp{"linear", c, 0.0F};
    if (node.is("Add")) return PostOp{"linear", 1.0F, c};
    if (node.is("Sub")) return y_first ? PostOp{"linear", 1.0F, -c} : PostOp{"linear", -1.0F, c};
    if (node.is("Div") && y_first && c != 0) return PostOp{"linear", static_cast<float>(1.0 / *number), 0.0F};
    return std::nullopt;
}

std::string_view binary_name(const Node& node) {
    if (node.inputs().size() != 2) return {};
    if (node.is("Add") || node.is("Sum")) return "add";
    if (node.is("Sub")) return "sub";
    if (node.is("Mul")) return "mul";
    if (node.is("Div")) return "div";
    if (node.is("Max")) return "max";
    return node.is("Min") ? "min" : std::string_view{};
}

// With one reader of y, the operand cannot depend on y except through that reader: no cycle can come from
// reading it earlier.
bool append_binary(Graph& graph, Node& main, const Node& node) {
    const Value* y = main.output();
    Value* operand = other_input(node, y);
    const std::string_view name = binary_name(node);
    if (name.empty() || operand == nullptr || !operand->type.shape || !y->type.shape) return false;
    if (operand->type.dtype != y->type.dtype || !broadcasts_into(*operand->type.shape, *y->type.shape))
        return false;
    const bool y_first = node.input(0) == y;
    if (name == "div" && !y_first) return false;
    if (name == "sub" && !y_first) {
        append_post_op(graph, main, "linear", -1.0F, 0.0F);
        append_post_op(graph, main, "add", 0, 0, operand);
    } else {
        append_post_op(graph, main, name, 0, 0, operand);
    }
    return true;
}

bool append(Graph& graph, Node& main, const Node& node) {
    auto unary = unary_post_op(graph, node);
    if (unary && node.input(0) != main.output()) return false;
    if (!unary) unary = linear_post_op(graph, node, main.output());
    if (!unary) return append_binary(graph, main, node);
    append_post_op(graph, main, unary->name, unary->alpha, unary->beta);
    return true;
}

}  // namespace

//! What follows must be the only reader, and an operand must not enlarge the result. Later operators choose
//! first, so that of two summands the one that is computed last takes the addition.
bool fuse_post_ops(Graph& graph) {
    const auto fuse = [](Graph& g, Node& main) {
        bool changed = false;
        while (main.attributes.get_strings("post_ops").size() + 2 <= kMaxPostOps) {
            Node* next = only_user(g, main.output());
            if (next == nullptr || !is_float(main.output()) || !append(g, main, *next)) break;
            take_over(g, main, *next);
            changed = true;
        }
        if (changed && main.domain().empty()) g.set_op(main, std::string(main.op()), kKilterDomain);
        return changed;
    };
    return rewrite(graph, {"Conv", "ConvTranspose", "kilter.Conv", "kilter.ConvTranspose", "kilter.MatMul"},
                   fuse, Visit::backward);
}

}  // namespace kilter
