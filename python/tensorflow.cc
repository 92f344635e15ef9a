// TensorFlow's graphs for Python: convert_graph with its options and its report, and what is asked about files.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
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
                           .algorithm = tensorflow::batch_ranges(algorithm),
                           .calibration_command = command,
                           .debug = debug,
                           .fused_fp32 = fused_fp32};
    if (samples)
        options.samples = [&samples]() -> std::optional<std::vector<Tensor>> {
            const nb::gil_scoped_acquire gil;
            const nb::object batch = (*samples)();
            if (batch.is_none()) return std::nullopt;
            return to_own_tensors(nb::cast<nb::list>(batch));
        };
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
    nb::list operators;
    for (const tensorflow::ConvertedOperator& entry : report.operators) {
        nb::dict row;
        row["name"] = entry.name;
        row["op"] = entry.op;
        row["precision"] = entry.integer ? "int8" : "fp32";
        row["note"] = entry.note;
        operators.append(row);
    }
    nb::dict result;
    result["output_graph"] = report.output_graph.string();
    result["operators"] = operators;
    result["quantize"] = report.quantize;
    result["dequantize"] = report.dequantize;
    result["tensors"] = report.tensors;
    result["batches"] = report.batches;
    return result;
}

//! The names of all nodes of a GraphDef file.
std::set<std::string> graph_nodes(const std::string& path) {
    std::set<std::string> names;
    const tensorflow::TfGraph graph = tensorflow::read_graph_def(path);
    for (const auto& node : graph.nodes()) names.insert(node->name);
    return names;
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

}  // namespace

void bind_tensorflow(nb::module_& module) {
    module.def("graph_nodes", &graph_nodes, "path"_a);
    module.def("freeze_saved_model", &freeze_saved_model, "path"_a, "signature"_a);
    module.def("model_format", &model_format, "path"_a);
    module.def("opaque_operators", &opaque_operators, "session"_a);
    module.def("convert_graph", &convert, "input_graph"_a, "output_graph"_a, "inputs"_a, "outputs"_a,
               "excluded_ops"_a, "excluded_nodes"_a, "per_channel"_a, "algorithm"_a, "command"_a,
               "samples"_a.none(), "debug"_a, "fused_fp32"_a, "progress"_a.none());
}

}  // namespace kilter::python
