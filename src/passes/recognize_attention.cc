// Scaled dot-product attention from its spelled-out form: softmax(scale·q·kᵀ + mask)·v, on [batch, heads,
// length, depth].
#include "passes/list.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

struct Product {
    Value* a = nullptr;
    Value* b = nullptr;
    bool trans_b = false;
    double alpha = 1;
};

// A matrix product without bias, post-ops or a transposed first operand.
std::optional<Product> match_product(const Value* value) {
    const Node* node = value->producer();
    if (node == nullptr || !is_any(*node, {"MatMul", "kilter.MatMul"}) || node->inputs().size() != 2)
        return std::nullopt;
    if (node->attributes.get_int("trans_a") != 0 || node->attributes.has("post_ops")) return std::nullopt;
    return Product{node->input(0), node->input(1), node->attributes.get_int("trans_b") != 0,
                   node->attributes.get_float("alpha", 1.0F)};
}

struct Scores {
    Value* q = nullptr;
    Value* k = nullptr;
    bool k_transposed = false;
    double scale = 1;
    Value* mask = nullptr;
    const Value* product = nullptr;
};

void strip_into(const Graph& graph, Value*& value, double& scale) {
    const ScalarOperand stripped = strip_scale(graph, value);
    value = stripped.x;
    scale *= stripped.c;
}

// scale·q·kᵀ; the factor may stand behind the product or on either operand.
std::optional<Scores> match_scaled_product(const Graph& graph, Value* value) {
    if (!graph.has_single_use(value)) return std::nullopt;
    Scores scores;
    strip_into(graph, value, scores.scale);
    const auto product = match_product(value);
    if (!product || !graph.has_single_use(value)) return std::nullopt;
    scores.scale *= product->alpha;
    scores.q = product->a;
    scores.k = product->b;
    scores.k_transposed = !product->trans_b;
    scores.product = value;
    strip_into(graph, scores.q, scores.scale);
    strip_into(graph, scores.k, scores.scale);
    return scores;
}

std::optional<Scores> match_scores(const Graph& graph, Value* logits) {
    if (auto plain = match_scaled_product(graph, logits)) return plain;
    const Node* add = produced_by(logits, "Add");
    if (add == nullptr || !graph.has_single_use(logits)) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
        auto scores = match_scaled_product(graph, add->input(i));
        Value* mask = add->input(1 - i);
        if (!scores || !mask->type.shape || !scores->product->type.shape) continue;
        if (!broadcasts_into(*mask->type.shape, *scores->product->type.shape)) continue;
        scores->mask = mask;
        return scores;
    }
    return std::nullopt;
}

// [B, H, D, T] made by a Transpose is read in front of it, where the rows of k are whole.
void undo_transpose(Graph& graph, Scores& scores) {
    if (!scores.k_transposed) return;
    const Node* transpose = produced_by(scores.k, "Transpose");
    if (transpose == nullptr) return;
    const std::vector<int64_t> perm = transpose->attributes.get_ints("perm");
    if (perm == std::vector<int64_t>{0, 1, 3, 2}) {
        scores.k = transpose->input(0);
    } else if (perm == std::vector<int64_t>{0, 2, 3, 1}) {
        Attributes attributes;
        attributes.set("perm", std::vector<int64_t>{0, 2, 1, 3});
        const Dims& dims = *scores.k->type.shape;
        Value* k = graph.add("Transpose", {transpose->input(0)}, std::move(attributes), transpose->name);
        k->type = ValueType(scores.k->type.dtype, {dims[0], dims[1], dims[3], dims[2]});
        scores.k = k;
    } else {
        return;
    }
    scores.k_transposed = false;
    strip_into(graph, scores.k, scores.scale);
}

// Batch and heads must agree: attention does not broadcast them.
bool same_heads(const Value* a, const Value* b) {
    if (rank_of(a) != 4 || rank_of(b) != 4) return false;
    return (*a->type.shape)[0] == (*b->type.shape)[0] && (*a->type.shape)[1] == (*b->type.shape)[1];
}

}  // namespace

//! Needs rank 4 and no other reader of scores and probabilities.
bool recognize_attention(Graph& graph) {
    return rewrite(graph, "Softmax", [](Graph& g, Node& softmax) {
        const int64_t axis = softmax.attributes.get_int("axis", -1);
        if (rank_of(softmax.output()) != 4 || (axis != -1 && axis != 3) || !is_float(softmax.output()))
            return false;
        const Node* context = only_user(g, softmax.output());
        const auto weighted = context == nullptr ? std::nullopt : match_product(context->output());
        if (!weighted || weighted->a != softmax.output() || weighted->trans_b || weighted->alpha != 1)
            return false;
        auto scores = match_scores(g, softmax.input(0));
        if (!scores || !same_heads(scores->q, scores->k) || !same_heads(scores->q, weighted->b)) return false;
        undo_transpose(g, *scores);
        Attributes attributes;
        attributes.set("scale", static_cast<float>(scores->scale));
        attributes.set("k_transposed", int64_t{scores->k_transposed ? 1 : 0});
        std::vector<Value*> inputs{scores->q, scores->k, weighted->b};
        if (scores->mask != nullptr) inputs.push_back(scores->mask);
        replace_with(g, context->output(), "Attention", std::move(inputs), std::move(attributes),
                     kKilterDomain);
        return true;
    });
}

}  // namespace kilter
