// The stages: a graph is made ready, what of it could run on integers is listed, choices and ranges make the integer graph.
#include <algorithm>
#include <set>

#include "base/fail.h"
#include "deploy/tensorflow/calibration_log.h"
#include "deploy/tensorflow/choose_ranges.h"
#include "deploy/tensorflow/integer_graph.h"
#include "formats/tensorflow/graph_def.h"
#include "formats/tensorflow/inline_functions.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/rewrites/rewrites.h"
#include "formats/tensorflow/saved_model.h"
#include "kilter/deploy/tensorflow.h"
#include "kilter/engine/program.h"
#include "kilter/formats/load.h"

namespace kilter::tensorflow {
namespace {

// Errors name the file that they are about.
template <class Work>
void about(const std::filesystem::path& file, Work&& work) {
    try {
        work();
    } catch (const Error& error) {
        throw error.in(file.string());
    }
}

// A name that matches nothing is a slip: the user believes that something was spared.
void check_exclusions(const TfGraph& graph, const std::vector<std::string>& names) {
    for (const std::string& name : names)
        if (graph.find(name) == nullptr)
            throw Error(fmt::format("there is no node '{}' to exclude", name),
                        "names are those of the graph, without ':0'");
}

std::vector<std::string> placeholders(const TfGraph& graph) {
    std::vector<std::string> names;
    for (const auto& node : graph.nodes())
        if (node->op == "Placeholder" || node->op == "PlaceholderV2") names.push_back(node->name);
    return names;
}

std::vector<std::string> without_port(std::vector<std::string> names) {
    for (std::string& name : names) name = TfInput(name).text();
    return names;
}

QuantizableOperator describe(const Fused& fused) {
    QuantizableOperator entry{fused.product->name, fused.product->op, {}, {fused.product->inputs[0].text()}};
    for (const TfNode* node : fused.nodes())
        if (node != fused.product) entry.fused.push_back(node->name);
    if (fused.sum != nullptr) entry.tensors.push_back(fused.summand.text());
    return entry;
}

// By the name of an operator of the source model: the entry of the plan that it became part of.
std::map<std::string, const OperatorPlan*> entries_by_name(const Plan& plan) {
    std::map<std::string, const OperatorPlan*> entries;
    for (const OperatorPlan& entry : plan.operators)
        for (const std::string& origin : entry.origins) entries.emplace(origin, &entry);
    for (const OperatorPlan& entry : plan.operators) entries[entry.name] = &entry;
    return entries;
}

OperatorChoice choice_of(const OperatorPlan& entry) {
    return {entry.precision, entry.weights.granularity, entry.weights.bits,
            RangeOptions{.algorithm = entry.activation.algorithm, .percentile = entry.activation.percentile}};
}

}  // namespace

struct QuantizableGraph::Parts {
    TfGraph graph;
    GraphSelection selection;
    std::vector<QuantizableOperator> operators;
    std::vector<ConvertedOperator> left_out;
    std::vector<std::string> tensors;

    IslandOptions islands(const Choices& choices) const {
        return {.inputs = selection.inputs,
                .outputs = selection.outputs,
                .excluded_ops = selection.excluded_ops,
                .excluded_nodes = selection.excluded_nodes,
                .choices = choices};
    }
};

GraphDef::GraphDef(TfGraph graph) : graph_(std::make_shared<const TfGraph>(std::move(graph))) {}

std::string GraphDef::bytes() const { return write_graph_def_bytes(*graph_); }

void GraphDef::save(const std::filesystem::path& path) const { write_graph_def(*graph_, path); }

QuantizableGraph::QuantizableGraph(const std::filesystem::path& source, GraphSelection selection) {
    const bool saved_model = format_of(source) == ModelFormat::saved_model;
    require(saved_model || selection.signature.empty(), "{}: only SavedModel folders have signatures",
            source.string());
    SavedModel saved = saved_model ? read_saved_model(source, selection.signature)
                                   : SavedModel{read_graph_def(source), {}, {}};
    if (selection.inputs.empty()) selection.inputs = saved.inputs;
    if (selection.outputs.empty()) selection.outputs = saved.outputs;
    about(source, [&] { prepare(std::move(saved.graph), std::move(selection)); });
}

QuantizableGraph::QuantizableGraph(std::span<const std::byte> bytes, GraphSelection selection) {
    prepare(read_graph_def_bytes(bytes), std::move(selection));
}

void QuantizableGraph::prepare(TfGraph graph, GraphSelection selection) {
    auto parts = std::make_shared<Parts>();
    inline_functions(graph, selection.outputs);
    if (selection.outputs.empty())
        for (const TfNode* node : possible_outputs(graph)) selection.outputs.push_back(node->name);
    selection.inputs = without_port(std::move(selection.inputs));
    selection.outputs = without_port(std::move(selection.outputs));
    check_exclusions(graph, selection.excluded_nodes);
    if (selection.inputs.empty()) {
        strip_unused(graph, {}, selection.outputs);
        selection.inputs = placeholders(graph);
    }
    optimize_for_quantization(graph, selection.inputs, selection.outputs);
    parts->graph = std::move(graph);
    parts->selection = std::move(selection);
    const Islands found = find_islands(parts->graph, parts->islands({}));
    if (found.fused.empty())
        throw Error("there is nothing to quantize",
                    found.left_out.empty()
                        ? "it has no convolution or product with constant weights"
                        : fmt::format("'{}': {}", found.left_out[0].first, found.left_out[0].second));
    for (const Fused& fused : found.fused) parts->operators.push_back(describe(fused));
    for (const TfNode* node : found.passive) {
        QuantizableOperator& entry =
            parts->operators.emplace_back(QuantizableOperator{node->name, node->op, {}, {}});
        for (size_t i = 0; i < passive_tensors(*node); ++i) entry.tensors.push_back(node->inputs[i].text());
    }
    for (const auto& [name, reason] : found.left_out)
        parts->left_out.push_back({name, parts->graph.find(name)->op, false, reason});
    parts->tensors = tensors_to_observe(found);
    parts_ = std::move(parts);
}

const std::vector<std::string>& QuantizableGraph::inputs() const { return parts_->selection.inputs; }
const std::vector<std::string>& QuantizableGraph::outputs() const { return parts_->selection.outputs; }
const std::vector<QuantizableOperator>& QuantizableGraph::operators() const { return parts_->operators; }
const std::vector<ConvertedOperator>& QuantizableGraph::left_out() const { return parts_->left_out; }
const std::vector<std::string>& QuantizableGraph::tensors() const { return parts_->tensors; }

GraphDef QuantizableGraph::fp32() const { return GraphDef(parts_->graph); }

GraphDef QuantizableGraph::logging() const {
    TfGraph graph = parts_->graph;
    insert_prints(graph, tensors());
    return GraphDef(std::move(graph));
}

GraphDef QuantizableGraph::counting(const Ranges& extremes) const {
    TfGraph graph = parts_->graph;
    insert_counts(graph, extremes);
    return GraphDef(std::move(graph));
}

void QuantizableGraph::observe(const SampleSource& samples,
                               const std::function<void(const std::string&, const Tensor&)>& seen) const {
    const auto is_fed = [&](const std::string& name) {
        return std::ranges::find(inputs(), name) != inputs().end();
    };
    std::vector<std::string> computed;
    std::ranges::copy_if(tensors(), std::back_inserter(computed), std::not_fn(is_fed));
    const Program program(lower(parts_->graph, {inputs(), computed}));
    bool any = false;
    while (const std::optional<std::vector<Tensor>> sample = samples()) {
        require(sample->size() == inputs().size(), "a sample has {} arrays for {} inputs", sample->size(),
                inputs().size());
        any = true;
        std::vector<Tensor> feeds;
        for (const Port& port : program.inputs()) {
            const auto found = std::ranges::find(inputs(), port.name);
            require(found != inputs().end(), "there is no sample for input '{}'", port.name);
            feeds.push_back((*sample)[static_cast<size_t>(found - inputs().begin())]);
        }
        const std::vector<Tensor> results = program.run(feeds);
        for (size_t i = 0; i < computed.size(); ++i) seen(computed[i], results[i]);
        for (size_t i = 0; i < inputs().size(); ++i)
            if (std::ranges::binary_search(tensors(), inputs()[i])) seen(inputs()[i], (*sample)[i]);
    }
    require(any, "there are no samples to calibrate with");
}

Stats QuantizableGraph::observe(const SampleSource& samples) const {
    Observations observations(tensors());
    observe(samples,
            [&](const std::string& tensor, const Tensor& values) { observations.add(tensor, values); });
    return observations.stats();
}

Choices QuantizableGraph::choices(const Plan& plan) const {
    const std::map<std::string, const OperatorPlan*> entries = entries_by_name(plan);
    Choices choices;
    size_t known = 0;
    for (const QuantizableOperator& entry : operators()) {
        std::vector<std::string> names{entry.name};
        names.insert(names.end(), entry.fused.begin(), entry.fused.end());
        const auto found =
            std::ranges::find_if(names, [&](const auto& name) { return entries.contains(name); });
        if (found != names.end()) {
            choices[entry.name] = choice_of(*entries.at(*found));
            ++known;
        } else if (!is_passive(*parts_->graph.find(entry.name))) {
            choices[entry.name] = {.precision = Precision::f32};
        }
    }
    require(known > 0, "the plan is of another model: it names none of the {} operators of this graph",
            operators().size());
    return choices;
}

IntegerGraph QuantizableGraph::write(const Choices& choices, const Ranges& ranges) const {
    for (const auto& [name, choice] : choices) {
        const auto is_named = [&](const QuantizableOperator& entry) { return entry.name == name; };
        require(std::ranges::any_of(operators(), is_named), "there is no operator '{}' to choose for", name);
        require(choice.bits >= 2 && choice.bits <= 8, "operator '{}': {} bits; 2 to 8 make sense", name,
                choice.bits);
    }
    TfGraph graph = parts_->graph;
    IntegerGraph result;
    IntegerReport report =
        write_integer_graph(graph, parts_->islands(choices), ranges,
                            [&](const TfGraph& unfused) { result.unfused = GraphDef(unfused); });
    result.graph = GraphDef(std::move(graph));
    result.operators = std::move(report.operators);
    result.quantize = report.quantize;
    result.dequantize = report.dequantize;
    return result;
}

IntegerGraph QuantizableGraph::write(const Choices& choices, const Stats& stats) const {
    TfGraph graph = parts_->graph;
    const Islands islands = find_islands(graph, parts_->islands(choices));
    return write(choices, choose_ranges(graph, islands, choices, stats));
}

}  // namespace kilter::tensorflow
