#include "quantization/insert.h"

#include "base/fail.h"
#include "passes/rewrite.h"

namespace kilter {
namespace {

struct ParameterValues {
    Value* scale;
    Value* zero_point;
    Attributes attributes;
};

ParameterValues add_parameters(Graph& graph, const QuantParams& params, const std::string& stem) {
    Shape shape;
    if (params.axis >= 0) shape.push_back(static_cast<int64_t>(params.scales.size()));
    ParameterValues added;
    added.scale =
        graph.add_constant(Tensor::of<float>(shape, params.scales), graph.fresh_name(stem + "_scale"));
    added.zero_point =
        graph.add_constant(Tensor::of<int32_t>(shape, params.zero_points).converted(params.dtype),
                           graph.fresh_name(stem + "_zero_point"));
    if (params.axis >= 0) added.attributes.set("axis", int64_t{params.axis});
    return added;
}

Value* add_quantize(Graph& graph, Value* value, const ParameterValues& parameters, DType dtype) {
    Value* result = graph.add_value(graph.fresh_name(value->name() + "_quantized"), value->type);
    result->type.dtype = dtype;
    graph.add_node("QuantizeLinear", {value, parameters.scale, parameters.zero_point}, {result},
                   parameters.attributes, value->name() + "_QuantizeLinear");
    return result;
}

Value* add_dequantize(Graph& graph, Value* quantized, const ParameterValues& parameters,
                      const std::string& stem) {
    Value* result = graph.add_value(graph.fresh_name(stem + "_dequantized"), quantized->type);
    result->type.dtype = DType::f32;
    graph.add_node("DequantizeLinear", {quantized, parameters.scale, parameters.zero_point}, {result},
                   parameters.attributes, stem + "_DequantizeLinear");
    return result;
}

// The parameters of one group, as constants of the graph that its pairs share.
class GroupPairs {
  public:
    GroupPairs(Graph& graph, const Groups& groups, const Group& group)
        : graph_(graph),
          groups_(groups),
          group_(group),
          parameters_(add_parameters(graph, group.params, group.roots.front()->name())) {}

    void insert() {
        for (Value* value : group_.members) {
            const std::vector<Node*> users(value->users().begin(), value->users().end());
            if (is_needed(*value, users)) insert(value, users);
        }
    }

  private:
    bool is_needed(const Value& value, const std::vector<Node*>& users) const {
        for (const Node* user : users)
            for (size_t i = 0; i < user->inputs().size(); ++i)
                if (user->input(i) == &value && groups_.reads_integers(*user, i)) return true;
        return false;
    }

    void insert(Value* value, const std::vector<Node*>& users) {
        // Decided before the graph changes: the rules look at who reads and makes what.
        struct Read {
            Node* node;
            size_t index;
            bool signed_second;
        };
        std::vector<Read> reads;
        const bool everywhere = groups_.made_on_integers(value);
        for (Node* user : users)
            for (size_t i = 0; i < user->inputs().size(); ++i) {
                if (user->input(i) != value) continue;
                const bool integers = groups_.reads_integers(*user, i);
                if (!integers && !everywhere) continue;
                const bool second = integers && how_read(graph_, *user, i) == Reading::s8;
                reads.push_back({user, i, second && group_.params.dtype != DType::i8});
            }
        Value* dequantized = nullptr;
        if (const Tensor* constant = graph_.constant(value))
            dequantized = add_dequantized(graph_, quantize_tensor(*constant, group_.params), group_.params,
                                          value->name());
        else
            dequantized =
                add_dequantize(graph_, add_quantize(graph_, value, parameters_, group_.params.dtype),
                               parameters_, value->name());
        if (everywhere)
            for (size_t i = 0; i < graph_.outputs().size(); ++i)
                if (graph_.outputs()[i].value == value) graph_.set_output_value(i, dequantized);
        Value* as_signed = nullptr;
        for (const Read& read : reads) {
            if (read.signed_second && as_signed == nullptr)
                as_signed =
                    add_pair(graph_, dequantized, activation_params(group_.range, DType::i8, Scheme::sym));
            graph_.set_input(*read.node, read.index, read.signed_second ? as_signed : dequantized);
        }
    }

    Graph& graph_;
    const Groups& groups_;
    const Group& group_;
    ParameterValues parameters_;
};

}  // namespace

Value* add_dequantized(Graph& graph, const Tensor& integers, const QuantParams& params,
                       const std::string& stem) {
    Value* quantized = graph.add_constant(integers, graph.fresh_name(stem + "_quantized"));
    return add_dequantize(graph, quantized, add_parameters(graph, params, stem), stem);
}

Value* add_pair(Graph& graph, Value* value, const QuantParams& params) {
    const ParameterValues parameters = add_parameters(graph, params, value->name());
    return add_dequantize(graph, add_quantize(graph, value, parameters, params.dtype), parameters,
                          value->name());
}

void insert_pairs(Graph& graph, const Groups& groups) {
    for (const Group& group : groups.all())
        if (group.quantized) GroupPairs(graph, groups, group).insert();
}

}  // namespace kilter
