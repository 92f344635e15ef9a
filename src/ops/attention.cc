// Attention: scaled dot products of ONNX, with grouped heads, masks, a key/value cache, soft cap and sliding windows.
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "ops/attention.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"
#include "ops/product.h"

namespace kilter {

Tensor shared_heads(const Tensor& x, int64_t heads) {
    if (x.dim(1) == heads) return x;
    Tensor result(DType::f64, {x.dim(0), heads, x.dim(2), x.dim(3)});
    const int64_t size = x.dim(2) * x.dim(3), share = heads / x.dim(1);
    double* target = result.as_mutable<double>().data();
    for (int64_t head = 0; head < x.dim(0) * heads; ++head)
        target = std::copy_n(x.as<double>().data() + head / share * size, size, target);
    return result;
}

}  // namespace kilter

namespace kilter::attention_op {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

// What the shapes say, as dimensions that may be unknown. Inputs are [B, heads, S, D] or [B, S, heads * D].
struct Sizes {
    Dim batch, q_heads, kv_heads, q_length, kv_length, past, total, head, v_head;
    bool packed = false;  // the form of rank 3
};

Dim divided(const Dim& features, int64_t heads, std::string_view what) {
    if (!features.known()) return {};
    require(features.value % heads == 0, "{} features of {} cannot form {} heads", features.value, what,
            heads);
    return features.value / heads;
}

Sizes read_sizes(const Attributes& attributes, const Dims& q, const Dims& k, const Dims& v,
                 const std::optional<Dims>& past_k, const std::optional<Dims>& past_v) {
    require((q.size() == 3 || q.size() == 4) && k.size() == q.size() && v.size() == q.size(),
            "Q, K and V must all have rank 3 or all have rank 4, found {}, {} and {}", to_string(q),
            to_string(k), to_string(v));
    Sizes sizes;
    sizes.packed = q.size() == 3;
    sizes.batch = q[0];
    Dim k_head;
    if (sizes.packed) {
        const int64_t q_heads = attributes.get_int("q_num_heads");
        const int64_t kv_heads = attributes.get_int("kv_num_heads");
        require(q_heads > 0 && kv_heads > 0,
                "inputs of rank 3 need positive q_num_heads and kv_num_heads, found {} and {}", q_heads,
                kv_heads);
        sizes.q_heads = q_heads;
        sizes.kv_heads = kv_heads;
        sizes.q_length = q[1];
        sizes.kv_length = k[1];
        sizes.head = divided(q[2], q_heads, "Q");
        k_head = divided(k[2], kv_heads, "K");
        sizes.v_head = divided(v[2], kv_heads, "V");
        require(agree(k[1], v[1]), "K and V have lengths {} and {}", to_string(k[1]), to_string(v[1]));
    } else {
        sizes.q_heads = q[1];
        sizes.kv_heads = k[1];
        sizes.q_length = q[2];
        sizes.kv_length = k[2];
        sizes.head = q[3];
        k_head = k[3];
        sizes.v_head = v[3];
        require(agree(k[1], v[1]) && agree(k[2], v[2]), "K {} and V {} do not fit together", to_string(k),
                to_string(v));
    }
    require(agree(q[0], k[0]) && agree(q[0], v[0]), "Q, K and V have batches {}, {} and {}", to_string(q[0]),
            to_string(k[0]), to_string(v[0]));
    require(agree(sizes.head, k_head), "heads of Q and K have {} and {} features", to_string(sizes.head),
            to_string(k_head));
    if (sizes.q_heads.known() && sizes.kv_heads.known())
        require(sizes.kv_heads.value > 0 && sizes.q_heads.value % sizes.kv_heads.value == 0,
                "{} query heads cannot share {} key heads", sizes.q_heads.value, sizes.kv_heads.value);
    sizes.past = 0;
    if (past_k) {
        require(past_k->size() == 4 && agree((*past_k)[0], q[0]) && agree((*past_k)[1], sizes.kv_heads) &&
                    agree((*past_k)[3], sizes.head),
                "past_key {} does not fit the key", to_string(*past_k));
        sizes.past = (*past_k)[2];
    }
    require(
        !past_v || (past_v->size() == 4 && agree((*past_v)[0], q[0]) && agree((*past_v)[1], sizes.kv_heads) &&
                    agree((*past_v)[2], sizes.past) && agree((*past_v)[3], sizes.v_head)),
        "past_value {} does not fit the value", past_v ? to_string(*past_v) : "");
    sizes.total = sum(sizes.past, sizes.kv_length);
    return sizes;
}

void infer(InferContext& context) {
    require_same_dtype(context.dtype(0), context.dtype(1), "K");
    for (size_t i = 0; i < 4; ++i) context.set_output(i, context.dtype(i == 2 ? 2 : 0));
    if (!context.shape(0) || !context.shape(1) || !context.shape(2)) return;
    require(context.has_input(4) == context.has_input(5), "past_key and past_value must be given together");
    const Sizes sizes = read_sizes(context.attributes(), *context.shape(0), *context.shape(1),
                                   *context.shape(2), context.shape(4), context.shape(5));
    const DType dtype = context.dtype(0);
    const bool unknown_past = context.has_input(4) && !context.shape(4);
    const Dim total = unknown_past ? Dim() : sizes.total;
    const Dim features = sizes.packed ? product(sizes.v_head, sizes.q_heads) : Dim();
    context.set_output(0, dtype,
                       sizes.packed ? Dims{sizes.batch, sizes.q_length, features}
                                    : Dims{sizes.batch, sizes.q_heads, sizes.q_length, sizes.v_head});
    context.set_output(1, dtype, {sizes.batch, sizes.kv_heads, total, sizes.head});
    context.set_output(2, context.dtype(2), {sizes.batch, sizes.kv_heads, total, sizes.v_head});
    context.set_output(3, dtype, {sizes.batch, sizes.q_heads, sizes.q_length, total});
}

// [A, B, C, D] → [A, C, B, D].
Tensor swap_middle(const Tensor& x) {
    Tensor y(DType::f64, {x.dim(0), x.dim(2), x.dim(1), x.dim(3)});
    const int64_t b = x.dim(1), c = x.dim(2), d = x.dim(3);
    for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t feature = i % d, column = i / d % c, row = i / d / c % b, image = i / d / c / b;
        y.as_mutable<double>()[static_cast<size_t>(((image * c + column) * b + row) * d + feature)] =
            x.as<double>()[static_cast<size_t>(i)];
    }
    return y;
}

Tensor with_heads(const Tensor& x, int64_t heads) {
    if (x.rank() == 4) return to_reals(x);
    return swap_middle(to_reals(x).reshaped({x.dim(0), x.dim(1), heads, x.dim(2) / heads}));
}

// Past and new tokens of every head, one after the other.
Tensor append(const Tensor& past, const Tensor& now) {
    if (past.empty()) return now;
    Tensor result(DType::f64, {now.dim(0), now.dim(1), past.dim(2) + now.dim(2), now.dim(3)});
    const int64_t old_size = past.dim(2) * past.dim(3), new_size = now.dim(2) * now.dim(3);
    double* target = result.as_mutable<double>().data();
    for (int64_t head = 0; head < now.dim(0) * now.dim(1); ++head) {
        target = std::copy_n(past.as<double>().data() + head * old_size, old_size, target);
        target = std::copy_n(now.as<double>().data() + head * new_size, new_size, target);
    }
    return result;
}

// What is added to the scores: the mask, and -inf where causality, windows or padding forbid to look.
Tensor attention_bias(const KernelContext& context, const Shape& scores, int64_t past) {
    const Attributes& attributes = context.attributes();
    const int64_t left = attributes.get_int("left_window_size", -1);
    const int64_t right = attributes.get_int("right_window_size", -1);
    require(left >= -1 && right >= -1, "window sizes must be -1 or more, found {} and {}", left, right);
    const bool causal = attributes.get_int("is_causal") != 0;
    std::vector<int64_t> valid;  // keys that are not padding, per image
    if (context.has_input(6)) {
        require(!context.has_input(4), "nonpad_kv_seqlen cannot be combined with a cache");
        valid = context.input(6).to_ints();
        require(static_cast<int64_t>(valid.size()) == scores[0],
                "nonpad_kv_seqlen must have {} entries, found {}", scores[0], valid.size());
    }
    Tensor bias = real_zeros(scores);
    const int64_t rows = scores[2], columns = scores[3];
    if (context.has_input(3)) {
        const Tensor& given = context.input(3);
        const bool boolean = given.dtype() == DType::boolean;
        const Tensor mask = to_reals(given);
        require(mask.rank() >= 1 && mask.rank() <= 4, "the mask must have rank 1 to 4, found {}",
                to_string(mask.shape()));
        // A mask may cover fewer keys than there are; the rest is masked.
        const int64_t covered = mask.dim(-1) == 1 ? columns : std::min(mask.dim(-1), columns);
        Shape walked = scores;
        walked.back() = mask.dim(-1) == 1 ? columns : mask.dim(-1);
        require(walked.back() <= columns, "the mask {} covers more than {} keys", to_string(mask.shape()),
                columns);
        std::ranges::fill(bias.as_mutable<double>(), kMasked);
        BroadcastIndex index(mask.shape(), walked);
        const int64_t lines = scores[0] * scores[1] * rows;
        for (int64_t line = 0; line < lines; ++line)
            for (int64_t j = 0; j < covered; ++j, index.next()) {
                const double value = mask.as<double>()[static_cast<size_t>(index.offset())];
                bias.as_mutable<double>()[static_cast<size_t>(line * columns + j)] =
                    boolean ? (value != 0 ? 0.0 : kMasked) : value;
            }
    }
    const std::span<double> values = bias.as_mutable<double>();
    for (int64_t i = 0; i < bias.size(); ++i) {
        const int64_t key = i % columns;
        const auto image = static_cast<size_t>(i / columns / rows / scores[1]);
        const int64_t offset = valid.empty() ? past : valid[image] - rows;
        const int64_t position = i / columns % rows + offset;
        const bool hidden = (causal && key > position) || (left >= 0 && position - key > left) ||
                            (right >= 0 && key - position > right) || (!valid.empty() && key >= valid[image]);
        if (hidden) values[static_cast<size_t>(i)] = kMasked;
    }
    return bias;
}

void softmax_rows(Tensor& scores, const Tensor& bias) {
    const auto count = static_cast<size_t>(scores.dim(-1));
    const std::span<double> values = scores.as_mutable<double>();
    for (size_t row = 0; row < values.size(); row += count) {
        const std::span<double> line = values.subspan(row, count);
        const std::span<const double> allowed = bias.as<double>().subspan(row, count);
        // A query that may look at nothing gives zeros, not NaN.
        if (std::ranges::all_of(allowed, [](double value) { return value == kMasked; })) {
            std::ranges::fill(line, 0.0);
            continue;
        }
        const double largest = *std::ranges::max_element(line);
        double sum = 0;
        for (double& value : line) sum += value = std::exp(value - largest);
        for (double& value : line) value /= sum;
    }
}

void kernel(KernelContext& context) {
    const Tensor& q_input = needed(context, 0, "Q");
    const Tensor& k_input = needed(context, 1, "K");
    const Tensor& v_input = needed(context, 2, "V");
    const Attributes& attributes = context.attributes();
    require_real(q_input.dtype(), "Q");
    require_same_dtype(q_input.dtype(), k_input.dtype(), "K");
    require(context.has_input(4) == context.has_input(5), "past_key and past_value must be given together");
    const Sizes sizes =
        read_sizes(attributes, to_dims(q_input.shape()), to_dims(k_input.shape()), to_dims(v_input.shape()),
                   optional_dims(context, 4), optional_dims(context, 5));
    const int64_t heads = sizes.q_heads.value;
    const Tensor q = with_heads(q_input, heads);
    const Tensor past_k = context.has_input(4) ? to_reals(context.input(4)) : Tensor();
    const Tensor past_v = context.has_input(5) ? to_reals(context.input(5)) : Tensor();
    const Tensor k = append(past_k, with_heads(k_input, sizes.kv_heads.value));
    const Tensor v = append(past_v, with_heads(v_input, sizes.kv_heads.value));

    const int64_t mode = attributes.get_int("qk_matmul_output_mode");
    require(mode >= 0 && mode <= 3, "attribute 'qk_matmul_output_mode' must be 0 to 3, found {}", mode);
    Tensor scores = product(q, transposed(shared_heads(k, heads), "K"));
    const double scale = attributes.has("scale") ? attributes.get_float("scale")
                                                 : 1.0 / std::sqrt(static_cast<double>(sizes.head.value));
    const double softcap = attributes.get_float("softcap");
    const std::span<double> values = scores.as_mutable<double>();
    const auto reveal = [&](int64_t stage) {
        if (mode == stage && context.wants_output(3)) store_reals(context, 3, q_input.dtype(), scores);
    };
    for (double& value : values) value *= scale;
    reveal(0);
    if (softcap > 0)
        for (double& value : values) value = softcap * std::tanh(value / softcap);
    reveal(1);
    const Tensor bias = attention_bias(context, scores.shape(), sizes.past.value);
    for (size_t i = 0; i < values.size(); ++i) values[i] += bias.as<double>()[i];
    reveal(2);
    softmax_rows(scores, bias);
    reveal(3);
    Tensor y = product(scores, shared_heads(v, heads));
    if (sizes.packed)
        y = swap_middle(y).reshaped({q_input.dim(0), q_input.dim(1), heads * sizes.v_head.value});
    store_reals(context, 0, q_input.dtype(), y);
    if (context.wants_output(1)) store_reals(context, 1, k_input.dtype(), k);
    if (context.wants_output(2)) store_reals(context, 2, v_input.dtype(), v);
}

KILTER_OP({.name = "Attention",
           .min_inputs = 3,
           .max_inputs = 7,
           .max_outputs = 4,
           .attributes = {{"is_causal", AttributeKind::integer},
                          {"kv_num_heads", AttributeKind::integer},
                          {"left_window_size", AttributeKind::integer},
                          {"q_num_heads", AttributeKind::integer},
                          {"qk_matmul_output_mode", AttributeKind::integer},
                          {"right_window_size", AttributeKind::integer},
                          {"scale", AttributeKind::real},
                          {"softcap", AttributeKind::real},
                          {"softmax_precision", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::attention_op
