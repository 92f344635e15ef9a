#include "ops/post_ops.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/broadcast.h"

namespace kilter {
namespace {

constexpr std::array<std::string_view, 6> kBinary{"add", "sub", "mul", "div", "max", "min"};
constexpr std::array<std::string_view, 17> kUnary{
    "relu", "leaky_relu", "clip",       "sigmoid",      "tanh", "gelu_erf", "gelu_tanh", "swish", "elu",
    "mish", "exp",        "hard_swish", "hard_sigmoid", "abs",  "sqrt",     "square",    "linear"};

}  // namespace

bool is_binary_post_op(std::string_view name) { return std::ranges::find(kBinary, name) != kBinary.end(); }
bool is_unary_post_op(std::string_view name) { return std::ranges::find(kUnary, name) != kUnary.end(); }

std::vector<PostOp> post_ops(const Node& node, int fixed_inputs) {
    const std::vector<std::string> names = node.attributes.get_strings("post_ops");
    const std::vector<float> alphas = node.attributes.get_floats("post_alphas");
    const std::vector<float> betas = node.attributes.get_floats("post_betas");
    require(alphas.size() == names.size() && betas.size() == names.size(),
            "post_ops, post_alphas and post_betas have {}, {} and {} entries", names.size(), alphas.size(),
            betas.size());
    std::vector<PostOp> ops;
    int operand = fixed_inputs;
    for (size_t i = 0; i < names.size(); ++i) {
        PostOp op{names[i], alphas[i], betas[i], -1};
        if (is_binary_post_op(names[i])) {
            op.operand = operand++;
            require(node.input(static_cast<size_t>(op.operand)) != nullptr, "post-op '{}' has no operand",
                    names[i]);
        } else {
            require(is_unary_post_op(names[i]), "unknown post-op '{}'", names[i]);
        }
        ops.push_back(std::move(op));
    }
    return ops;
}

void append_post_op(Graph& graph, Node& node, std::string_view name, float alpha, float beta, Value* operand,
                    int fixed_inputs) {
    std::vector<std::string> names = node.attributes.get_strings("post_ops");
    std::vector<float> alphas = node.attributes.get_floats("post_alphas");
    std::vector<float> betas = node.attributes.get_floats("post_betas");
    if (operand != nullptr) {
        const auto used =
            std::ranges::count_if(names, [](const auto& entry) { return is_binary_post_op(entry); });
        graph.set_input(node, static_cast<size_t>(fixed_inputs + used), operand);
    }
    names.emplace_back(name);
    alphas.push_back(alpha);
    betas.push_back(beta);
    node.attributes.set("post_ops", std::move(names));
    node.attributes.set("post_alphas", std::move(alphas));
    node.attributes.set("post_betas", std::move(betas));
}

double apply_unary(const PostOp& op, double x) {
    const auto sigmoid = [](double v) { return 1.0 / (1.0 + std::exp(-v)); };
    const double alpha = op.alpha;
    const double beta = op.beta;
    if (op.name == "relu") return std::max(x, 0.0);
    if (op.name == "leaky_relu") return x < 0 ? alpha * x : x;
    if (op.name == "clip") return std::min(std::max(x, alpha), beta);
    if (op.name == "sigmoid") return sigmoid(x);
    if (op.name == "tanh") return std::tanh(x);
    if (op.name == "gelu_erf") return 0.5 * x * (1.0 + std::erf(x * M_SQRT1_2));
    if (op.name == "gelu_tanh")
        return 0.5 * x * (1.0 + std::tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x)));
    if (op.name == "swish") return x * sigmoid(alpha * x);
    if (op.name == "hard_swish") return x * std::min(std::max(x / 6.0 + 0.5, 0.0), 1.0);
    if (op.name == "hard_sigmoid") return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    if (op.name == "elu") return x < 0 ? alpha * (std::exp(x) - 1.0) : x;
    if (op.name == "mish")
        return x * std::tanh(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
    if (op.name == "exp") return std::exp(x);
    if (op.name == "abs") return std::fabs(x);
    if (op.name == "sqrt") return std::sqrt(x);
    if (op.name == "square") return x * x;
    if (op.name == "linear") return alpha * x + beta;
    fail("unknown post-op '{}'", op.name);
}

double apply_binary(const PostOp& op, double x, double operand) {
    if (op.name == "add") return x + operand;
    if (op.name == "sub") return x - operand;
    if (op.name == "mul") return x * operand;
    if (op.name == "div") return x / operand;
    if (op.name == "max") return std::max(x, operand);
    if (op.name == "min") return std::min(x, operand);
    fail("unknown post-op '{}'", op.name);
}

void apply_post_ops(const std::vector<PostOp>& ops, Tensor& result, const std::vector<Tensor>& inputs) {
    for (const PostOp& op : ops) {
        const DType dtype = result.dtype();
        void* data = result.raw_mutable();
        if (!op.is_binary()) {
            for (int64_t i = 0; i < result.size(); ++i)
                store_double(dtype, data, i, apply_unary(op, load_double(dtype, data, i)));
            continue;
        }
        const Tensor& operand = inputs.at(static_cast<size_t>(op.operand));
        BroadcastIndex index(operand.shape(), result.shape());
        for (int64_t i = 0; i < result.size(); ++i, index.next())
            store_double(dtype, data, i,
                         apply_binary(op, load_double(dtype, data, i),
                                      load_double(operand.dtype(), operand.raw(), index.offset())));
    }
}

}  // namespace kilter
