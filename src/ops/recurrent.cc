#include "ops/recurrent.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter {
namespace {

// Numbers of an activation list are used up in order by the functions that take them.
class Parameters {
  public:
    explicit Parameters(std::vector<float> values) : values_(std::move(values)) {}
    double next(double absent) { return used_ < values_.size() ? values_[used_++] : absent; }

  private:
    std::vector<float> values_;
    size_t used_ = 0;
};

std::string lower_case(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

std::function<double(double)> make_activation(const std::string& name, Parameters& alphas,
                                              Parameters& betas) {
    const std::string kind = lower_case(name);
    if (kind == "relu") return [](double x) { return std::max(x, 0.0); };
    if (kind == "tanh") return [](double x) { return std::tanh(x); };
    if (kind == "sigmoid") return [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
    if (kind == "softsign") return [](double x) { return x / (1.0 + std::fabs(x)); };
    if (kind == "softplus")
        return [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); };
    if (kind == "leakyrelu") return [a = alphas.next(0.01)](double x) { return x < 0 ? a * x : x; };
    if (kind == "thresholdedrelu") return [a = alphas.next(1.0)](double x) { return x > a ? x : 0.0; };
    if (kind == "elu") return [a = alphas.next(1.0)](double x) { return x < 0 ? a * std::expm1(x) : x; };
    if (kind == "affine") return [a = alphas.next(1.0), b = betas.next(0.0)](double x) { return a * x + b; };
    if (kind == "scaledtanh")
        return [a = alphas.next(1.0), b = betas.next(1.0)](double x) { return a * std::tanh(b * x); };
    if (kind == "hardsigmoid")
        return [a = alphas.next(0.2), b = betas.next(0.5)](double x) {
            return std::min(std::max(a * x + b, 0.0), 1.0);
        };
    fail("unknown activation '{}'", name);
}

int64_t direction_count(const Attributes& attributes) {
    const std::string direction = attributes.get_string("direction", "forward");
    require(direction == "forward" || direction == "reverse" || direction == "bidirectional",
            "attribute 'direction' must be forward, reverse or bidirectional, found '{}'", direction);
    return direction == "bidirectional" ? 2 : 1;
}

// Activations of all directions, in order.
std::vector<Activation> read_activations(const Attributes& attributes,
                                         const std::vector<std::string>& defaults) {
    const auto directions = static_cast<size_t>(direction_count(attributes));
    std::vector<std::string> names = attributes.get_strings("activations");
    if (names.empty())
        for (size_t i = 0; i < directions; ++i) names.insert(names.end(), defaults.begin(), defaults.end());
    require(names.size() == defaults.size() * directions,
            "attribute 'activations' must have {} entries, found {}", defaults.size() * directions,
            names.size());
    Parameters alphas(attributes.get_floats("activation_alpha"));
    Parameters betas(attributes.get_floats("activation_beta"));
    const double clip = attributes.get_float("clip");
    std::vector<Activation> activations;
    for (const std::string& name : names) activations.push_back({make_activation(name, alphas, betas), clip});
    return activations;
}

void require_dims(const std::optional<Dims>& found, const Dims& expected, std::string_view what) {
    if (!found) return;
    bool fits = found->size() == expected.size();
    for (size_t i = 0; fits && i < expected.size(); ++i) fits = agree((*found)[i], expected[i]);
    require(fits, "{} must have shape {}, found {}", what, to_string(expected), to_string(*found));
}

struct Layout {
    Dim steps, batch, inputs, hidden;
    int64_t directions = 1;
    bool batch_first = false;

    Dims state() const {
        return batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
    }
    Dims sequence() const {
        return batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden};
    }
};

// Reads sizes from X and R and checks all other inputs against them.
template <class Context>
Layout read_layout(const Context& context, int64_t gates, bool has_cell) {
    const Attributes& attributes = context.attributes();
    const std::optional<Dims> x = optional_dims(context, 0);
    const std::optional<Dims> r = optional_dims(context, 2);
    require(!x || x->size() == 3, "the input must have rank 3, found {}", x ? to_string(*x) : "");
    require(!r || r->size() == 3, "the recurrence weights must have rank 3, found {}",
            r ? to_string(*r) : "");
    Layout layout;
    const int64_t order = attributes.get_int("layout");
    require(order == 0 || order == 1, "attribute 'layout' must be 0 or 1, found {}", order);
    layout.batch_first = order == 1;
    layout.directions = direction_count(attributes);
    if (x) {
        layout.steps = (*x)[layout.batch_first ? 1 : 0];
        layout.batch = (*x)[layout.batch_first ? 0 : 1];
        layout.inputs = (*x)[2];
    }
    if (r) layout.hidden = (*r)[2];
    const int64_t declared = attributes.get_int("hidden_size", -1);
    if (declared >= 0) {
        require(agree(layout.hidden, declared),
                "attribute 'hidden_size' is {} but the recurrence weights say {}", declared,
                layout.hidden.value);
        layout.hidden = declared;
    }
    constexpr int64_t kLargest = int64_t{1} << 40;
    require(layout.hidden.value < kLargest, "hidden size {} is too large", layout.hidden.value);
    const auto rows = [&](int64_t factor) {
        return layout.hidden.known() ? Dim(factor * layout.hidden.value) : Dim();
    };
    const Dim directions(layout.directions);
    require_dims(optional_dims(context, 1), {directions, rows(gates), layout.inputs}, "the input weights");
    require_dims(r, {directions, rows(gates), layout.hidden}, "the recurrence weights");
    require_dims(optional_dims(context, 3), {directions, rows(2 * gates)}, "the bias");
    require_dims(optional_dims(context, 4), {layout.batch}, "the sequence lengths");
    require_dims(optional_dims(context, 5), layout.state(), "the initial hidden state");
    if (has_cell) {
        require_dims(optional_dims(context, 6), layout.state(), "the initial cell state");
        require_dims(optional_dims(context, 7), {directions, rows(3)}, "the peephole weights");
    }
    return layout;
}

// Position of (direction, batch) in a state tensor, in vectors of `hidden` numbers.
size_t state_offset(const Recurrence& sizes, int64_t direction, int64_t item) {
    const int64_t row =
        sizes.batch_first ? item * sizes.directions + direction : direction * sizes.batch + item;
    return static_cast<size_t>(row * sizes.hidden);
}

size_t sequence_offset(const Recurrence& sizes, int64_t step, int64_t direction, int64_t item) {
    const int64_t row = sizes.batch_first ? (item * sizes.steps + step) * sizes.directions + direction
                                          : (step * sizes.directions + direction) * sizes.batch + item;
    return static_cast<size_t>(row * sizes.hidden);
}

Tensor optional_reals(const KernelContext& context, size_t index, const Shape& absent_shape) {
    return context.has_input(index) ? to_reals(context.input(index)) : real_zeros(absent_shape);
}

std::vector<int64_t> sequence_lengths(const KernelContext& context, const Recurrence& sizes) {
    if (!context.has_input(4)) return std::vector<int64_t>(static_cast<size_t>(sizes.batch), sizes.steps);
    std::vector<int64_t> lengths = context.input(4).to_ints();
    for (const int64_t length : lengths)
        require(length >= 0 && length <= sizes.steps, "sequence length {} lies outside 0 … {}", length,
                sizes.steps);
    return lengths;
}

}  // namespace

double RecurrentWeights::from_input(int64_t row, const double* x) const {
    double sum = input_bias[row];
    for (int64_t i = 0; i < inputs; ++i) sum += w[row * inputs + i] * x[i];
    return sum;
}

double RecurrentWeights::from_hidden(int64_t row, const double* h) const {
    double sum = hidden_bias[row];
    for (int64_t i = 0; i < hidden; ++i) sum += r[row * hidden + i] * h[i];
    return sum;
}

void infer_recurrent(InferContext& context, int64_t gates, bool has_cell) {
    const Layout layout = read_layout(context, gates, has_cell);
    const DType dtype = context.dtype(0);
    context.set_output(0, dtype, layout.sequence());
    context.set_output(1, dtype, layout.state());
    if (has_cell) context.set_output(2, dtype, layout.state());
}

void run_recurrent(KernelContext& context, int64_t gates, bool has_cell,
                   const std::vector<std::string>& default_activations, RecurrentStep step) {
    const Tensor& input = needed(context, 0, "the input");
    require_real(input.dtype(), "the input");
    const Tensor x = to_reals(input);
    const Tensor w = to_reals(needed(context, 1, "the input weights"));
    const Tensor r = to_reals(needed(context, 2, "the recurrence weights"));
    const Layout layout = read_layout(context, gates, has_cell);
    const Attributes& attributes = context.attributes();
    const Recurrence sizes{layout.steps.value,
                           layout.batch.value,
                           layout.inputs.value,
                           layout.hidden.value,
                           layout.directions,
                           layout.batch_first,
                           has_cell};
    const std::vector<Activation> activations = read_activations(attributes, default_activations);
    const int64_t rows = gates * sizes.hidden;
    const Shape state = ValueType(DType::f64, layout.state()).static_shape();
    const Tensor bias = optional_reals(context, 3, {sizes.directions, 2 * rows});
    const std::vector<int64_t> lengths = sequence_lengths(context, sizes);
    const Tensor initial_h = optional_reals(context, 5, state);
    const Tensor initial_c = has_cell ? optional_reals(context, 6, state) : Tensor();
    const Tensor peephole = has_cell && context.has_input(7) ? to_reals(context.input(7)) : Tensor();

    Tensor y = real_zeros(ValueType(DType::f64, layout.sequence()).static_shape());
    Tensor last_h = real_zeros(state);
    Tensor last_c = real_zeros(has_cell ? state : Shape{0});
    const auto hidden = static_cast<size_t>(sizes.hidden);
    for (int64_t direction = 0; direction < sizes.directions; ++direction) {
        RecurrentWeights weights;
        weights.inputs = sizes.inputs;
        weights.hidden = sizes.hidden;
        weights.w = w.as<double>().data() + direction * rows * sizes.inputs;
        weights.r = r.as<double>().data() + direction * rows * sizes.hidden;
        weights.input_bias = bias.as<double>().data() + direction * 2 * rows;
        weights.hidden_bias = weights.input_bias + rows;
        if (!peephole.empty()) weights.peephole = peephole.as<double>().data() + direction * 3 * sizes.hidden;
        const auto count = static_cast<ptrdiff_t>(default_activations.size());
        weights.activations.assign(activations.begin() + direction * count,
                                   activations.begin() + (direction + 1) * count);
        const bool reverse = direction == 1 || attributes.get_string("direction") == "reverse";
        for (int64_t item = 0; item < sizes.batch; ++item) {
            const size_t offset = state_offset(sizes, direction, item);
            const auto from = [&](const Tensor& tensor) {
                const std::span<const double> part = tensor.as<double>().subspan(offset, hidden);
                return std::vector<double>(part.begin(), part.end());
            };
            std::vector<double> h = from(initial_h);
            std::vector<double> c = has_cell ? from(initial_c) : std::vector<double>();
            const int64_t length = lengths[static_cast<size_t>(item)];
            for (int64_t i = 0; i < length; ++i) {
                const int64_t at = reverse ? length - 1 - i : i;
                const int64_t row = sizes.batch_first ? item * sizes.steps + at : at * sizes.batch + item;
                step(weights, attributes, x.as<double>().data() + row * sizes.inputs, h, c);
                std::ranges::copy(h, y.as_mutable<double>().begin() +
                                         static_cast<ptrdiff_t>(sequence_offset(sizes, at, direction, item)));
            }
            std::ranges::copy(h, last_h.as_mutable<double>().begin() + static_cast<ptrdiff_t>(offset));
            if (has_cell)
                std::ranges::copy(c, last_c.as_mutable<double>().begin() + static_cast<ptrdiff_t>(offset));
        }
    }
    if (context.wants_output(0)) store_reals(context, 0, input.dtype(), y);
    if (context.wants_output(1)) store_reals(context, 1, input.dtype(), last_h);
    if (has_cell && context.wants_output(2)) store_reals(context, 2, input.dtype(), last_c);
}

std::vector<AttributeSpec> recurrent_attributes(std::vector<AttributeSpec> more) {
    std::vector<AttributeSpec> attributes{
        {"activation_alpha", AttributeKind::reals}, {"activation_beta", AttributeKind::reals},
        {"activations", AttributeKind::texts},      {"clip", AttributeKind::real},
        {"direction", AttributeKind::text},         {"hidden_size", AttributeKind::integer},
        {"layout", AttributeKind::integer}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return attributes;
}

}  // namespace kilter
