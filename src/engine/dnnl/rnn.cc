// LSTM, GRU and RNN through oneDNN's recurrent primitives, for the forms that frameworks export: default activations,
// full sequences, no clipping, no peepholes, constant weights. Weights are brought to oneDNN's gate order once.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include <fmt/ranges.h>

#include "engine/builder.h"

namespace kilter::engine {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

enum class Cell { lstm, gru, gru_linear, plain };

struct Sizes {
    int64_t steps, batch, inputs, hidden, directions, gates;
};

// Gates as oneDNN orders them, by their place in ONNX's weights. LSTM: i f c o from i o f c; GRU agrees: z r h.
std::vector<int64_t> gate_order(Cell cell) {
    if (cell == Cell::lstm) return {0, 2, 3, 1};
    if (cell == Cell::plain) return {0};
    return {0, 1, 2};
}

Desc f32(const dnnl::memory::dims& dims, Tag tag) { return {dims, dnnl::memory::data_type::f32, tag}; }

std::string lower_case(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

// The activation of a plain RNN, or tanh where all activations are the defaults; null where oneDNN has no such cell.
std::optional<dnnl::algorithm> activation(const Node& node, Cell cell, int64_t directions) {
    std::vector<std::string> names = node.attributes.get_strings("activations");
    for (std::string& name : names) name = lower_case(name);
    if (names.empty()) return dnnl::algorithm::eltwise_tanh;
    if (cell == Cell::plain) {
        if (std::ranges::any_of(names, [&](const std::string& name) { return name != names[0]; }))
            return std::nullopt;
        if (names[0] == "tanh") return dnnl::algorithm::eltwise_tanh;
        if (names[0] == "relu") return dnnl::algorithm::eltwise_relu;
        if (names[0] == "sigmoid") return dnnl::algorithm::eltwise_logistic;
        return std::nullopt;
    }
    std::vector<std::string> defaults;
    for (int64_t i = 0; i < directions; ++i) {
        defaults.insert(defaults.end(), {"sigmoid", "tanh"});
        if (cell == Cell::lstm) defaults.emplace_back("tanh");
    }
    if (names != defaults) return std::nullopt;
    return dnnl::algorithm::eltwise_tanh;
}

bool full_sequences(const Builder& builder, const Value* lengths, int64_t steps) {
    if (lengths == nullptr) return true;
    const Tensor* tensor = builder.constant(lengths);
    return tensor != nullptr &&
           std::ranges::all_of(tensor->to_ints(), [&](int64_t length) { return length == steps; });
}

// ONNX weights [D, G·H, K] in oneDNN's order of gates, packed as `to` (dimensions [1, D, K, G, H]).
Array pack_weights(Builder& builder, const Tensor& weights, const Sizes& sizes, int64_t columns, Cell cell,
                   const Desc& to) {
    // Plans for other lengths share what is packed alike; an opaque layout may depend on everything.
    std::string key = fmt::format("rnn weights {} {}", static_cast<int>(cell), to.get_size());
    if (to.get_format_kind() == dnnl::memory::format_kind::blocked)
        key += fmt::format(" {} {}", fmt::join(to.get_strides(), ","), fmt::join(to.get_inner_blks(), ","));
    else
        key += fmt::format(" {} {}", sizes.steps, sizes.batch);
    const auto bytes = static_cast<int64_t>(to.get_size());
    Array array = builder.derived(weights, key, DType::u8, {bytes}, [&](void* target) {
        const std::vector<int64_t> order = gate_order(cell);
        const auto gate_floats = static_cast<size_t>(sizes.hidden * columns);
        std::vector<float> sorted(static_cast<size_t>(weights.size()));
        const auto* source = static_cast<const char*>(weights.raw());
        for (int64_t d = 0; d < sizes.directions; ++d) {
            for (size_t gate = 0; gate < order.size(); ++gate) {
                const size_t first = static_cast<size_t>(d) * order.size();
                std::memcpy(sorted.data() + (first + gate) * gate_floats,
                            source + (first + static_cast<size_t>(order[gate])) * gate_floats * sizeof(float),
                            gate_floats * sizeof(float));
            }
        }
        const auto gates = static_cast<int64_t>(order.size());
        const Desc from({1, sizes.directions, columns, gates, sizes.hidden}, dnnl::memory::data_type::f32,
                        {weights.size(), gates * sizes.hidden * columns, 1, sizes.hidden * columns, columns});
        dnnl::memory in(from, cpu(), sorted.data());
        dnnl::memory out(to, cpu(), target);
        dnnl::stream stream(cpu());
        dnnl::reorder(in, out).execute(stream, in, out);
        stream.wait();
    });
    array.dtype = DType::f32;
    array.desc = to;
    array.dense = false;
    return array;
}

// ONNX bias [D, 2·G·H] (input, then recurrent): the two always add up, but for the candidate of a linear-before-reset GRU.
Array pack_bias(Builder& builder, const Tensor& bias, const Sizes& sizes, Cell cell) {
    const std::vector<int64_t> order = gate_order(cell);
    const int64_t gates = static_cast<int64_t>(order.size()) + (cell == Cell::gru_linear ? 1 : 0);
    const int64_t hidden = sizes.hidden;
    return builder.derived(
        bias, fmt::format("rnn bias {}", static_cast<int>(cell)), DType::f32,
        {1, sizes.directions, gates, hidden}, [&](void* target) {
            auto* to = static_cast<float*>(target);
            const std::vector<double> values = bias.to_doubles();
            for (int64_t d = 0; d < sizes.directions; ++d) {
                const double* input = values.data() + d * 2 * static_cast<int64_t>(order.size()) * hidden;
                const double* recurrent = input + static_cast<int64_t>(order.size()) * hidden;
                for (size_t gate = 0; gate < order.size(); ++gate) {
                    const bool apart = cell == Cell::gru_linear && gate == 2;
                    for (int64_t i = 0; i < hidden; ++i) {
                        const int64_t at = order[gate] * hidden + i;
                        to[(d * gates + static_cast<int64_t>(gate)) * hidden + i] =
                            static_cast<float>(input[at] + (apart ? 0.0 : recurrent[at]));
                        if (apart) to[(d * gates + 3) * hidden + i] = static_cast<float>(recurrent[at]);
                    }
                }
            }
        });
}

struct Primitive {
    dnnl::primitive primitive;
    dnnl::primitive_desc_base pd;
    Desc weights_layer, weights_iter;
};

struct Descs {
    Desc src, src_iter, src_cell, weights_layer, weights_iter, bias, dst, dst_iter, dst_cell;
};

template <class Forward, class Make>
std::optional<Primitive> primitive_of(const Make& make) {
    const typename Forward::primitive_desc pd = make();
    if (!pd) return std::nullopt;
    return Primitive{Forward(pd), pd, pd.weights_layer_desc(), pd.weights_iter_desc()};
}

std::optional<Primitive> make_primitive(Cell cell, dnnl::rnn_direction direction, dnnl::algorithm function,
                                        const Descs& d) {
    const auto kind = dnnl::prop_kind::forward_inference;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    switch (cell) {
        case Cell::lstm:
            return primitive_of<dnnl::lstm_forward>([&] {
                return dnnl::lstm_forward::primitive_desc(cpu(), kind, direction, d.src, d.src_iter,
                                                          d.src_cell, d.weights_layer, d.weights_iter, d.bias,
                                                          d.dst, d.dst_iter, d.dst_cell, attributes, true);
            });
        case Cell::gru:
            return primitive_of<dnnl::gru_forward>([&] {
                return dnnl::gru_forward::primitive_desc(cpu(), kind, direction, d.src, d.src_iter,
                                                         d.weights_layer, d.weights_iter, d.bias, d.dst,
                                                         d.dst_iter, attributes, true);
            });
        case Cell::gru_linear:
            return primitive_of<dnnl::lbr_gru_forward>([&] {
                return dnnl::lbr_gru_forward::primitive_desc(cpu(), kind, direction, d.src, d.src_iter,
                                                             d.weights_layer, d.weights_iter, d.bias, d.dst,
                                                             d.dst_iter, attributes, true);
            });
        default:
            return primitive_of<dnnl::vanilla_rnn_forward>([&] {
                return dnnl::vanilla_rnn_forward::primitive_desc(cpu(), kind, function, direction, d.src,
                                                                 d.src_iter, d.weights_layer, d.weights_iter,
                                                                 d.bias, d.dst, d.dst_iter, attributes, true);
            });
    }
}

bool build(Builder& builder, const Node& node, Cell cell) {
    const Value* x = node.input(0);
    const Tensor* w = builder.constant(node.input(1));
    const Tensor* r = builder.constant(node.input(2));
    const Tensor* bias = builder.constant(node.input(3));
    if (builder.dtype(x) != DType::f32 || w == nullptr || r == nullptr || w->dtype() != DType::f32 ||
        r->dtype() != DType::f32)
        return false;
    if (node.input(3) != nullptr && bias == nullptr) return false;
    for (const size_t index : {size_t{5}, size_t{6}})
        if (node.input(index) != nullptr && builder.dtype(node.input(index)) != DType::f32) return false;
    const bool batch_first = node.attributes.get_int("layout") != 0;
    const Shape& shape = builder.shape(x);
    const Sizes sizes{shape[batch_first ? 1 : 0],
                      shape[batch_first ? 0 : 1],
                      shape[2],
                      r->shape()[2],
                      r->shape()[0],
                      static_cast<int64_t>(gate_order(cell).size())};
    const std::optional<dnnl::algorithm> function = activation(node, cell, sizes.directions);
    if (!function || node.attributes.get_float("clip") != 0.0F ||
        node.attributes.get_int("input_forget") != 0 || node.input(7) != nullptr ||
        !full_sequences(builder, node.input(4), sizes.steps))
        return false;
    const std::string way = node.attributes.get_string("direction", "forward");
    const auto direction = way == "bidirectional" ? dnnl::rnn_direction::bidirectional_concat
                           : way == "reverse"     ? dnnl::rnn_direction::unidirectional_right2left
                                                  : dnnl::rnn_direction::unidirectional_left2right;

    const bool has_cell = cell == Cell::lstm;
    const bool starts = node.input(5) != nullptr || (has_cell && node.input(6) != nullptr);
    const bool ends = node.output(1) != nullptr || (has_cell && node.output(2) != nullptr);
    const int64_t bias_gates = sizes.gates + (cell == Cell::gru_linear ? 1 : 0);
    const Desc state = f32({1, sizes.directions, sizes.batch, sizes.hidden}, Tag::ldnc);
    const int64_t width = sizes.directions * sizes.hidden;
    Descs descs;
    descs.src = f32({sizes.steps, sizes.batch, sizes.inputs}, Tag::tnc);
    descs.src_iter = starts ? state : Desc();
    descs.src_cell = starts && has_cell ? state : Desc();
    descs.weights_layer = f32({1, sizes.directions, sizes.inputs, sizes.gates, sizes.hidden}, Tag::any);
    descs.weights_iter = f32({1, sizes.directions, sizes.hidden, sizes.gates, sizes.hidden}, Tag::any);
    descs.bias = f32({1, sizes.directions, bias_gates, sizes.hidden}, Tag::ldgo);
    descs.dst = f32({sizes.steps, sizes.batch, width}, Tag::tnc);
    descs.dst_iter = ends ? state : Desc();
    descs.dst_cell = ends && has_cell ? state : Desc();
    const std::optional<Primitive> made = make_primitive(cell, direction, *function, descs);
    if (!made) return false;

    std::vector<Builder::Argument> arguments;
    // [N, T, I] seen as [T, N, I] and copied; states alike.
    const auto time_first = [&](const Value* value, const Desc& wanted, const std::vector<int>& swap) {
        Array array = builder.dense(value);
        if (!batch_first) {
            array.desc = wanted;
            return array;
        }
        array.desc = array.desc.permute_axes(swap);
        if (wanted.get_ndims() == 4) array.desc = array.desc.reshape(wanted.get_dims());
        const Array copy = builder.temporary(DType::f32, wanted.get_dims(), wanted);
        builder.add_reorder(array, copy);
        return copy;
    };
    const auto start = [&](const Value* value) {
        if (value != nullptr) return time_first(value, state, {1, 0, 2});
        return builder.constant_array(
            Tensor::filled(DType::f32, {1, sizes.directions, sizes.batch, sizes.hidden}, 0));
    };
    arguments.emplace_back(DNNL_ARG_SRC_LAYER, time_first(x, descs.src, {1, 0, 2}));
    if (starts) arguments.emplace_back(DNNL_ARG_SRC_ITER, start(node.input(5)));
    if (starts && has_cell) arguments.emplace_back(DNNL_ARG_SRC_ITER_C, start(node.input(6)));
    arguments.emplace_back(DNNL_ARG_WEIGHTS_LAYER,
                           pack_weights(builder, *w, sizes, sizes.inputs, cell, made->weights_layer));
    arguments.emplace_back(DNNL_ARG_WEIGHTS_ITER,
                           pack_weights(builder, *r, sizes, sizes.hidden, cell, made->weights_iter));
    // oneDNN's fast cells insist on a bias.
    arguments.emplace_back(DNNL_ARG_BIAS, bias != nullptr ? pack_bias(builder, *bias, sizes, cell)
                                                          : builder.constant_array(Tensor::filled(
                                                                DType::f32, descs.bias.get_dims(), 0)));

    // Results are views of what the primitive writes: [T, N, D·H] and [1, D, N, H].
    const Array dst = builder.temporary(DType::f32, descs.dst.get_dims(), descs.dst);
    arguments.emplace_back(DNNL_ARG_DST_LAYER, dst);
    const auto type = dnnl::memory::data_type::f32;
    const auto view = [&](const Value* value, Array array, const Shape& strides) {
        if (value == nullptr) return;
        array.desc = Desc(builder.shape(value), type, strides);
        builder.alias(value, array);
    };
    const int64_t row = sizes.batch * width;
    view(node.output(0), dst,
         batch_first ? Shape{width, row, sizes.hidden, 1} : Shape{row, sizes.hidden, width, 1});
    for (const int which : {1, 2}) {
        if (!ends || (which == 2 && !has_cell)) continue;
        const Array last = builder.temporary(DType::f32, state.get_dims(), state);
        arguments.emplace_back(which == 1 ? DNNL_ARG_DST_ITER : DNNL_ARG_DST_ITER_C, last);
        const int64_t plane = sizes.batch * sizes.hidden;
        view(node.output(static_cast<size_t>(which)), last,
             batch_first ? Shape{sizes.hidden, plane, 1} : Shape{plane, sizes.hidden, 1});
    }
    builder.add_primitive(made->primitive, made->pd, std::move(arguments));
    return true;
}

bool build_lstm(Builder& builder, const Node& node) { return build(builder, node, Cell::lstm); }
bool build_rnn(Builder& builder, const Node& node) { return build(builder, node, Cell::plain); }
bool build_gru(Builder& builder, const Node& node) {
    return build(builder, node,
                 node.attributes.get_int("linear_before_reset") != 0 ? Cell::gru_linear : Cell::gru);
}

KILTER_KERNEL("LSTM", build_lstm);
KILTER_KERNEL("GRU", build_gru);
KILTER_KERNEL("RNN", build_rnn);

}  // namespace
}  // namespace kilter::engine
