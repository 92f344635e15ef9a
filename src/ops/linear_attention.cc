// LinearAttention: a matrix state per head, updated by every token's key and value and read by its query.
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::linear_attention_op {

struct Rule {
    bool gated = false, delta = false;
};

Rule read_rule(const Attributes& attributes) {
    const std::string rule = attributes.get_string("update_rule", "gated_delta");
    require(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
            "attribute 'update_rule' must be linear, gated, delta or gated_delta, found '{}'", rule);
    return {rule.starts_with("gated"), rule.ends_with("delta")};
}

// [batch, length, heads * features] inputs; unknown dimensions stay unknown.
struct Sizes {
    Dim batch, length, key, value;  // features per head
    int64_t q_heads = 0, kv_heads = 0;

    Dims state() const { return {batch, kv_heads, key, value}; }
    Dims output() const { return {batch, length, product(value, q_heads)}; }
};

Sizes read_sizes(const Attributes& attributes, const Dims& q, const Dims& k, const Dims& v,
                 const std::optional<Dims>& past) {
    Sizes sizes;
    sizes.q_heads = attributes.get_int("q_num_heads");
    sizes.kv_heads = attributes.get_int("kv_num_heads");
    require(sizes.kv_heads > 0 && sizes.q_heads > 0 && sizes.q_heads % sizes.kv_heads == 0,
            "{} query heads cannot share {} key heads", sizes.q_heads, sizes.kv_heads);
    require(q.size() == 3 && k.size() == 3 && v.size() == 3,
            "query, key and value must have rank 3, found {}, {} and {}", to_string(q), to_string(k),
            to_string(v));
    for (size_t axis = 0; axis < 2; ++axis)
        require(agree(q[axis], k[axis]) && agree(q[axis], v[axis]),
                "query {}, key {} and value {} do not fit together", to_string(q), to_string(k),
                to_string(v));
    const auto per_head = [](const Dim& features, int64_t heads) {
        require(!features.known() || features.value % heads == 0, "{} features cannot form {} heads",
                features.value, heads);
        return features.known() ? Dim(features.value / heads) : Dim();
    };
    sizes.batch = q[0];
    sizes.length = q[1];
    sizes.key = per_head(k[2], sizes.kv_heads);
    sizes.value = per_head(v[2], sizes.kv_heads);
    require(agree(per_head(q[2], sizes.q_heads), sizes.key), "heads of query {} and key {} differ in size",
            to_string(q), to_string(k));
    const Dims state = sizes.state();
    bool fits = !past || past->size() == 4;
    for (size_t i = 0; past && fits && i < 4; ++i) fits = agree((*past)[i], state[i]);
    require(fits, "the past state must have shape {}, found {}", to_string(state),
            past ? to_string(*past) : "");
    return sizes;
}

void infer(InferContext& context) {
    read_rule(context.attributes());
    context.set_output(0, context.dtype(0));
    if (context.has_input(3)) context.set_output(1, context.dtype(3));
    if (!context.shape(0) || !context.shape(1) || !context.shape(2)) return;
    const Sizes sizes = read_sizes(context.attributes(), *context.shape(0), *context.shape(1),
                                   *context.shape(2), context.shape(3));
    context.set_output(0, context.dtype(0), sizes.output());
    context.set_output(1, context.has_input(3) ? context.dtype(3) : context.dtype(0), sizes.state());
}

// A gate input [batch, length, heads * per_head]; its last axis may also be 1.
Tensor gate(const KernelContext& context, size_t index, const Sizes& sizes, std::string_view what) {
    Tensor values = to_reals(needed(context, index, what));
    require(values.rank() == 3 && values.dim(0) == sizes.batch.value && values.dim(1) == sizes.length.value,
            "{} must have shape [{}, {}, …], found {}", what, sizes.batch.value, sizes.length.value,
            to_string(values.shape()));
    return values;
}

void kernel(KernelContext& context) {
    const Tensor& input = needed(context, 0, "the query");
    require_real(input.dtype(), "the query");
    const Tensor q = to_reals(input), k = to_reals(needed(context, 1, "the key"));
    const Tensor v = to_reals(needed(context, 2, "the value"));
    const Attributes& attributes = context.attributes();
    const Rule rule = read_rule(attributes);
    const Sizes sizes = read_sizes(attributes, to_dims(q.shape()), to_dims(k.shape()), to_dims(v.shape()),
                                   optional_dims(context, 3));
    const int64_t heads = sizes.kv_heads, keys = sizes.key.value, values = sizes.value.value;
    const int64_t share = sizes.q_heads / heads;
    Tensor decay, beta;
    if (rule.gated) {
        decay = gate(context, 4, sizes, "the decay");
        require(decay.dim(2) == heads || decay.dim(2) == heads * keys,
                "the decay must have {} or {} features, found {}", heads, heads * keys, decay.dim(2));
    }
    if (rule.delta) {
        beta = gate(context, 5, sizes, "beta");
        require(beta.dim(2) == heads || beta.dim(2) == 1, "beta must have {} features or 1, found {}", heads,
                beta.dim(2));
    }
    const Shape state = ValueType(DType::f64, sizes.state()).static_shape();
    Tensor memory = context.has_input(3) ? to_reals(context.input(3)).clone() : real_zeros(state);
    Tensor y = real_zeros(ValueType(DType::f64, sizes.output()).static_shape());
    double scale = attributes.get_float("scale");
    if (scale == 0) scale = 1.0 / std::sqrt(static_cast<double>(keys));

    std::vector<double> update(static_cast<size_t>(values));
    for (int64_t row = 0; row < sizes.batch.value * heads && memory.size() > 0; ++row) {
        const int64_t image = row / heads, head = row % heads;
        double* s = memory.as_mutable<double>().data() + row * keys * values;
        for (int64_t step = 0; step < sizes.length.value; ++step) {
            const int64_t token = image * sizes.length.value + step;
            const double* key = k.as<double>().data() + (token * heads + head) * keys;
            const double* value = v.as<double>().data() + (token * heads + head) * values;
            for (int64_t i = 0; rule.gated && i < keys; ++i) {
                const int64_t at =
                    decay.dim(2) == heads ? token * heads + head : (token * heads + head) * keys + i;
                const double factor = std::exp(decay.as<double>()[static_cast<size_t>(at)]);
                for (int64_t j = 0; j < values; ++j) s[i * values + j] *= factor;
            }
            for (int64_t j = 0; j < values; ++j) {
                double change = value[j];
                if (rule.delta) {
                    // Write only what the state does not yet recall for this key.
                    for (int64_t i = 0; i < keys; ++i) change -= s[i * values + j] * key[i];
                    change *= beta.as<double>()[static_cast<size_t>(beta.dim(2) == 1 ? token
                                                                                     : token * heads + head)];
                }
                update[static_cast<size_t>(j)] = change;
            }
            for (int64_t i = 0; i < keys; ++i)
                for (int64_t j = 0; j < values; ++j)
                    s[i * values + j] += key[i] * update[static_cast<size_t>(j)];
            for (int64_t reader = head * share; reader < (head + 1) * share; ++reader) {
                const double* query = q.as<double>().data() + (token * sizes.q_heads + reader) * keys;
                double* target = y.as_mutable<double>().data() + (token * sizes.q_heads + reader) * values;
                for (int64_t i = 0; i < keys; ++i)
                    for (int64_t j = 0; j < values; ++j) target[j] += scale * query[i] * s[i * values + j];
            }
        }
    }
    store_reals(context, 0, input.dtype(), y);
    if (context.wants_output(1))
        store_reals(context, 1, context.has_input(3) ? context.input(3).dtype() : input.dtype(), memory);
}

KILTER_OP({.name = "LinearAttention",
           .min_inputs = 3,
           .max_inputs = 6,
           .max_outputs = 2,
           .attributes = {{"chunk_size", AttributeKind::integer},
                          {"kv_num_heads", AttributeKind::integer, true},
                          {"q_num_heads", AttributeKind::integer, true},
                          {"scale", AttributeKind::real},
                          {"update_rule", AttributeKind::text}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::linear_attention_op
