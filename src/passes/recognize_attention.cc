// Scaled dot-product attention from its spelled-out form: softmax(scale·q·kᵀ + mask)·v, on [batch, heads,
// length, depth] or [heads, length, depth].
#include "ops/op.h"
#include "passes/list.h"
#include "passes/quantization_parameters.h"
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

// What is added to the scores: a value, or `fill` where a condition is (not) true.
struct Mask {
    Value* value = nullptr;
    std::optional<double> fill = std::nullopt;
    bool fill_where = true;
};

struct Scores {
    Value* q = nullptr;
    Value* k = nullptr;
    bool k_transposed = false;
    double scale = 1;
    std::vector<Mask> masks;
    const Value* product = nullptr;
};

// A score replaced by such a number vanishes in the softmax just as one that it is added to.
constexpr double kMinusInfinity = -1e30;

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

bool fits(const Value* mask, const Scores& scores) {
    return mask->type.shape && scores.product->type.shape &&
           broadcasts_into(*mask->type.shape, *scores.product->type.shape);
}

// The scaled product behind additions of masks and selections with Where, at most `depth` of them.
std::optional<Scores> match_scores(const Graph& graph, Value* logits, int depth = 3) {
    if (auto plain = match_scaled_product(graph, logits)) return plain;
    const Node* node = logits->producer();
    if (depth == 0 || node == nullptr || !graph.has_single_use(logits)) return std::nullopt;
    const auto masked = [&](Value* inner, const Mask& mask) -> std::optional<Scores> {
        auto scores = match_scores(graph, inner, depth - 1);
        if (!scores || !fits(mask.value, *scores)) return std::nullopt;
        scores->masks.push_back(mask);
        return scores;
    };
    if (node->is("Add"))
        for (size_t i = 0; i < 2; ++i)
            if (auto scores = masked(node->input(i), {node->input(1 - i)})) return scores;
    if (node->is("Where"))
        for (size_t i = 1; i < 3; ++i) {
            const auto fill = scalar_beside(graph, node->input(3 - i), logits);
            if (!fill || *fill > kMinusInfinity) continue;
            if (auto scores = masked(node->input(i), {node->input(0), fill, i == 2})) return scores;
        }
    return std::nullopt;
}

// All masks as one that is added; null when there is none.
Value* joined_mask(Graph& graph, const Scores& scores) {
    Value* sum = nullptr;
    for (const Mask& mask : scores.masks) {
        Value* addend = mask.value;
        if (mask.fill) {
            Value* fill = add_scalar(graph, *mask.fill, scores.q);
            Value* zero = add_scalar(graph, 0, scores.q);
            addend = graph.add("Where",
                               {mask.value, mask.fill_where ? fill : zero, mask.fill_where ? zero : fill});
            addend->type = ValueType(scores.q->type.dtype, *mask.value->type.shape);
        }
        if (sum != nullptr) {
            ValueType type(addend->type.dtype, broadcast(*sum->type.shape, *addend->type.shape));
            addend = graph.add("Add", {sum, addend});
            addend->type = std::move(type);
        }
        sum = addend;
    }
    return sum;
}

// Keys of [B, H, D, T] made by a Transpose are read in front of it, where each of them is whole.
void undo_transpose(Graph& graph, Scores& scores) {
    using Perm = std::vector<int64_t>;
    const Node* transpose = scores.k_transposed ? produced_by(scores.k, "Transpose") : nullptr;
    if (transpose == nullptr) return;
    const Perm perm = transpose->attributes.get_ints("perm");
    if (perm == Perm{0, 1, 3, 2} || perm == Perm{0, 2, 1}) {
        scores.k = transpose->input(0);
    } else if (perm == Perm{0, 2, 3, 1} || perm == Perm{1, 2, 0}) {
        Attributes attributes;
        attributes.set("perm", perm.size() == 4 ? Perm{0, 2, 1, 3} : Perm{1, 0, 2});
        Dims dims = *scores.k->type.shape;
        std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
        Value* k = graph.add("Transpose", {transpose->input(0)}, std::move(attributes), transpose->name);
        k->type = ValueType(scores.k->type.dtype, std::move(dims));
        scores.k = k;
    } else {
        return;
    }
    scores.k_transposed = false;
    strip_into(graph, scores.k, scores.scale);
}

// Batch and heads must agree: attention does not broadcast them.
bool same_heads(const Value* a, const Value* b) {
    if (rank_of(a) < 3 || rank_of(a) > 4 || rank_of(a) != rank_of(b)) return false;
    for (size_t axis = 0; axis + 2 < a->type.shape->size(); ++axis)
        if (!((*a->type.shape)[axis] == (*b->type.shape)[axis])) return false;
    return true;
}

// Three axes are those of one sample: [heads, length, depth].
void add_batch_axis(Graph& graph, Node& attention) {
    Value* axes = add_ints(graph, {0});
    for (size_t i = 0; i < attention.inputs().size(); ++i) {
        Value* input = attention.input(i);
        if (rank_of(input) != 3) continue;  // masks of lower rank broadcast
        Value* batched = graph.add("Unsqueeze", {input, axes});
        batched->type = input->type;
        batched->type.shape->insert(batched->type.shape->begin(), Dim(1));
        graph.set_input(attention, i, batched);
    }
    Value* result = attention.output();
    Value* batched = graph.add_value(graph.fresh_name(result->name()), result->type);
    batched->type.shape->insert(batched->type.shape->begin(), Dim(1));
    graph.set_output(attention, 0, batched);
    graph.add_node("Squeeze", {batched, axes}, {result});
}

// Dequantized bytes, possibly moved about since.
bool comes_from_bytes(const Graph& graph, const Value* value, bool symmetric) {
    while (value->producer() != nullptr &&
           is_any(*value->producer(), {"Transpose", "Reshape", "Squeeze", "Unsqueeze"}))
        value = value->producer()->input(0);
    const auto source = dequantized(graph, value);
    return source &&
           (!symmetric || (source->parameters.dtype == DType::i8 && source->parameters.zero_point == 0));
}

// Probabilities rounded to u8 in steps of 1/255 are what attention on integers computes (docs/arithmetic.md, "Attention"):
// the value behind that rounding, or the probabilities themselves.
Value* rounded_probabilities(const Graph& graph, Value* probabilities) {
    const QuantizedResult rounded = quantized_result(graph, probabilities);
    if (!rounded.parameters || rounded.parameters->dtype != DType::u8 ||
        rounded.parameters->zero_point != 0 || !near(rounded.parameters->scale, 1.0 / 255))
        return probabilities;
    const Node* back = only_user(graph, rounded.value);
    const auto source = back == nullptr ? std::nullopt : dequantized(graph, back->output());
    return source && source->parameters == *rounded.parameters ? back->output() : probabilities;
}

}  // namespace

//! Needs rank 4, or 3 without a batch, and no other reader of scores and probabilities.
bool recognize_attention(Graph& graph) {
    return rewrite(graph, "Softmax", [](Graph& g, Node& softmax) {
        const int64_t axis = softmax.attributes.get_int("axis", -1);
        const int rank = rank_of(softmax.output());
        if ((axis != -1 && axis != rank - 1) || !is_float(softmax.output())) return false;
        Value* probabilities = rounded_probabilities(g, softmax.output());
        const Node* context = only_user(g, probabilities);
        const auto weighted = context == nullptr ? std::nullopt : match_product(context->output());
        if (!weighted || weighted->a != probabilities || weighted->trans_b || weighted->alpha != 1)
            return false;
        auto scores = match_scores(g, softmax.input(0));
        if (scores && probabilities != softmax.output() &&
            !(comes_from_bytes(g, scores->q, false) && comes_from_bytes(g, scores->k, true) &&
              comes_from_bytes(g, weighted->b, true)))
            return false;
        if (!scores || !same_heads(scores->q, scores->k) || !same_heads(scores->q, weighted->b)) return false;
        if (!context->output()->type.shape) return false;
        undo_transpose(g, *scores);
        std::vector<Value*> inputs{scores->q, scores->k, weighted->b};
        if (Value* mask = joined_mask(g, *scores)) inputs.push_back(mask);
        Attributes attributes;
        attributes.set("scale", static_cast<float>(scores->scale));
        attributes.set("k_transposed", int64_t{scores->k_transposed ? 1 : 0});
        Node* attention = replace_with(g, context->output(), "Attention", std::move(inputs),
                                       std::move(attributes), kKilterDomain);
        if (rank == 3) add_batch_axis(g, *attention);
        return true;
    });
}

}  // namespace kilter
