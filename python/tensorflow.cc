// TensorFlow's graphs for Python: convert_graph with its options and its report, its stages one by one, and what is asked
// about files.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "formats/tensorflow/graph_def.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/saved_model.h"
#include "kilter/deploy/tensorflow.h"
#include "kilter/formats/load.h"
#include "session.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace kilter::python {
namespace {

using tensorflow::ConvertOptions;
using tensorflow::ConvertReport;
using tensorflow::IntegerGraph;
using tensorflow::Observations;
using tensorflow::QuantizableGraph;

SampleSource sample_source(const nb::callable& next) {
    return [next]() -> std::optional<std::vector<Tensor>> {
        const nb::gil_scoped_acquire gil;
        const nb::object batch = next();
        if (batch.is_none()) return std::nullopt;
        return to_own_tensors(nb::cast<nb::list>(batch));
    };
}

nb::list rows_of(const std::vector<tensorflow::ConvertedOperator>& entries) {
    nb::list rows;
    for (const tensorflow::ConvertedOperator& entry : entries) {
        nb::dict row;
        row["name"] = entry.name;
        row["op"] = entry.op;
        row["precision"] = entry.integer ? "int8" : "fp32";
        row["note"] = entry.note;
        rows.append(row);
    }
    return rows;
}

nb::dict convert(const std::string& input_graph, const std::string& output_graph,
                 const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                 const std::vector<std::string>& excluded_ops, const std::vector<std::string>& excluded_nodes,
                 bool per_channel, const std::string& algorithm, const std::string& command,
                 const std::optional<nb::callable>& samples, bool debug, const std::string& fused_fp32,
                 const std::optional<nb::callable>& progress) {
    ConvertOptions options{.input_graph = input_graph,
                           .output_graph = output_graph,
                           .inputs = inputs,
                           .outputs = outputs,
                           .excluded_ops = excluded_ops,
                           .excluded_nodes = excluded_nodes,
                           .per_channel = per_channel,
                           .algorithm = tensorflow::range_rule(algorithm),
                           .calibration_command = command,
                           .debug = debug,
                           .fused_fp32 = fused_fp32};
    if (samples) options.samples = sample_source(*samples);
    if (progress)
        options.progress = [&progress](const std::string& what) {
            const nb::gil_scoped_acquire gil;
            (*progress)(what);
        };
    ConvertReport report;
    {
        const nb::gil_scoped_release unlocked;
        report = tensorflow::convert_graph(options);
    }
    nb::dict result;
    result["output_graph"] = report.output_graph.string();
    result["operators"] = rows_of(report.operators);
    result["quantize"] = report.quantize;
    result["dequantize"] = report.dequantize;
    result["tensors"] = report.tensors;
    result["batches"] = report.batches;
    return result;
}

//! A SavedModel's signature as (GraphDef, inputs, outputs).
nb::tuple freeze_saved_model(const std::string& path, const std::string& signature) {
    tensorflow::SavedModel saved;
    std::string content;
    {
        const nb::gil_scoped_release unlocked;
        saved = tensorflow::read_saved_model(path, signature);
        content = tensorflow::write_graph_def_bytes(saved.graph);
    }
    return nb::make_tuple(nb::bytes(content.data(), content.size()), saved.inputs, saved.outputs);
}

const char* model_format(const std::string& path) {
    switch (format_of(path)) {
        case ModelFormat::onnx:
            return "onnx";
        case ModelFormat::graph_def:
            return "graph_def";
        case ModelFormat::saved_model:
            return "saved_model";
        case ModelFormat::mxnet:
            break;
    }
    return "mxnet";
}

//! Operators that the model keeps but cannot run, as "name (op)".
std::vector<std::string> opaque_operators(const Session& session) {
    std::vector<std::string> names;
    for (const auto& node : session.model().graph.nodes())
        if (node->domain() == tensorflow::kOpaqueDomain)
            names.push_back(node->name + " (" + node->op() + ")");
    return names;
}

nb::bytes to_bytes(const tensorflow::GraphDef& graph) {
    std::string bytes;
    {
        const nb::gil_scoped_release unlocked;
        bytes = graph.bytes();
    }
    return nb::bytes(bytes.data(), bytes.size());
}

void make_graph(QuantizableGraph* place, const nb::object& source, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::vector<std::string>& excluded_ops,
                const std::vector<std::string>& excluded_nodes, const std::string& signature) {
    tensorflow::GraphSelection selection{inputs, outputs, excluded_ops, excluded_nodes, signature};
    if (nb::isinstance<nb::bytes>(source)) {
        const nb::bytes bytes(source);
        const auto* data = static_cast<const std::byte*>(bytes.data());
        const nb::gil_scoped_release unlocked;
        new (place) QuantizableGraph(std::span(data, bytes.size()), std::move(selection));
    } else {
        const std::filesystem::path path(nb::cast<std::string>(source));
        const nb::gil_scoped_release unlocked;
        new (place) QuantizableGraph(path, std::move(selection));
    }
}

nb::list operators_of(const QuantizableGraph& graph) {
    nb::list rows;
    for (const tensorflow::QuantizableOperator& entry : graph.operators()) {
        nb::dict row;
        row["name"] = entry.name;
        row["op"] = entry.op;
        row["fused"] = entry.fused;
        row["tensors"] = entry.tensors;
        rows.append(row);
    }
    return rows;
}

// {operator: {precision, weights, bits, algorithm, percentile}}, all of it optional.
tensorflow::Choices choices_of(const nb::dict& words) {
    tensorflow::Choices choices;
    for (const auto& [name, given] : words) {
        tensorflow::OperatorChoice& choice = choices[nb::cast<std::string>(name)];
        for (const auto& [key, value] : nb::cast<nb::dict>(given)) {
            const auto word = nb::cast<std::string>(key);
            if (word == "precision")
                choice.precision = precision(nb::cast<std::string>(value));
            else if (word == "weights")
                choice.weights = granularity(nb::cast<std::string>(value));
            else if (word == "bits")
                choice.bits = nb::cast<int>(value);
            else if (word == "algorithm")
                choice.range.algorithm = range_algorithm(nb::cast<std::string>(value));
            else if (word == "percentile")
                choice.range.percentile = nb::cast<double>(value);
            else
                throw Error("a choice has no '" + word + "'",
                            "it says precision, weights, bits, algorithm and percentile");
        }
    }
    return choices;
}

// `measured`: Stats, or {tensor: (min, max)}. `chosen`: choices, or a plan as JSON.
nb::tuple write(const QuantizableGraph& graph, const nb::object& chosen, const nb::object& measured) {
    const std::string plan = nb::isinstance<nb::str>(chosen) ? nb::cast<std::string>(chosen) : "";
    tensorflow::Choices choices =
        plan.empty() ? choices_of(nb::cast<nb::dict>(chosen)) : tensorflow::Choices();
    tensorflow::Ranges ranges;
    const Stats* stats = nb::isinstance<Stats>(measured) ? nb::cast<const Stats*>(measured) : nullptr;
    if (stats == nullptr)
        for (const auto& [tensor, range] :
             nb::cast<std::map<std::string, std::pair<double, double>>>(measured))
            ranges[tensor] = {range.first, range.second};
    IntegerGraph written;
    {
        const nb::gil_scoped_release unlocked;
        if (!plan.empty()) choices = graph.choices(Plan::from_json(plan));
        written = stats != nullptr ? graph.write(choices, *stats) : graph.write(choices, ranges);
    }
    return nb::make_tuple(to_bytes(written.graph), rows_of(written.operators), written.quantize,
                          written.dequantize);
}

void bind_stages(nb::module_& module) {
    nb::class_<Observations>(module, "Observations")
        .def(nb::init<const std::vector<std::string>&>(), "tensors"_a)
        .def(
            "add",
            [](Observations& seen, const std::string& tensor, const nb::list& values) {
                const std::vector<Tensor> tensors = to_tensors(values);
                const nb::gil_scoped_release unlocked;
                for (const Tensor& one : tensors) seen.add(tensor, one);
            },
            "tensor"_a, "values"_a)
        .def("stats", &Observations::stats);
    nb::class_<QuantizableGraph>(module, "QuantizableGraph")
        .def("__init__", &make_graph, "source"_a, "inputs"_a, "outputs"_a, "excluded_ops"_a,
             "excluded_nodes"_a, "signature"_a)
        .def_prop_ro("inputs", &QuantizableGraph::inputs)
        .def_prop_ro("outputs", &QuantizableGraph::outputs)
        .def_prop_ro("operators", &operators_of)
        .def_prop_ro("left_out", [](const QuantizableGraph& graph) { return rows_of(graph.left_out()); })
        .def_prop_ro("tensors", &QuantizableGraph::tensors)
        .def("fp32", [](const QuantizableGraph& graph) { return to_bytes(graph.fp32()); })
        .def("logging", [](const QuantizableGraph& graph) { return to_bytes(graph.logging()); })
        .def(
            "observe",
            [](const QuantizableGraph& graph, const nb::callable& next) {
                const SampleSource samples = sample_source(next);
                const nb::gil_scoped_release unlocked;
                return graph.observe(samples);
            },
            "next"_a)
        .def("write", &write, "chosen"_a, "measured"_a);
}

}  // namespace

void bind_tensorflow(nb::module_& module) {
    module.def("freeze_saved_model", &freeze_saved_model, "path"_a, "signature"_a);
    module.def("model_format", &model_format, "path"_a);
    module.def("opaque_operators", &opaque_operators, "session"_a);
    bind_stages(module);
    module.def("convert_graph", &convert, "input_graph"_a, "output_graph"_a, "inputs"_a, "outputs"_a,
               "excluded_ops"_a, "excluded_nodes"_a, "per_channel"_a, "algorithm"_a, "command"_a,
               "samples"_a.none(), "debug"_a, "fused_fp32"_a, "progress"_a.none());
}

}  // namespace kilter::python
