#include "cli/model_file.h"

#include <algorithm>

#include "base/fail.h"
#include "cli/shapes.h"
#include "kilter/deploy/mxnet.h"
#include "kilter/deploy/tensorflow.h"

namespace kilter::cli {
namespace {

constexpr std::string_view kSymbol = "-symbol.json";

bool is_graph_def(const std::string& output) { return output.ends_with(".pb") || output.ends_with(".pbtxt"); }

// The operators of TensorFlow's graph are other ones than those of kilter's: their tensors are looked at once more.
std::string save_graph_def(const Plan& plan, const Origin& origin, const std::string& output) {
    const tensorflow::QuantizableGraph graph(
        origin.model,
        {.inputs = origin.inputs, .outputs = origin.load.outputs, .signature = origin.load.signature});
    const tensorflow::IntegerGraph integers =
        graph.write(graph.choices(plan), graph.observe(origin.calibrate()));
    integers.graph.save(output);
    const auto count = std::ranges::count(integers.operators, true, &tensorflow::ConvertedOperator::integer);
    return fmt::format("tensorflow  {} of {} operators on integers; {} times to integers, {} times back\n",
                       count, integers.operators.size(), integers.quantize, integers.dequantize);
}

}  // namespace

void add_load_options(CLI::App& command, LoadOptions& options) {
    const auto add_names = [&](const char* flag, std::vector<std::string>& names, const char* text) {
        command.add_option(flag, names, text)
            ->type_name("NAMES")
            ->delimiter(',')
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    add_names("--inputs", options.inputs,
              "TensorFlow: tensors to feed, e.g. a,b:1 (default: the placeholders)");
    add_names("--outputs", options.outputs, "TensorFlow: tensors to fetch (default: what no node reads)");
    command
        .add_option("--signature", options.signature,
                    "SavedModel: signature to use (default: serving_default)")
        ->type_name("NAME");
    command
        .add_option_function<std::vector<std::string>>(
            "--input-shape",
            [&options](const std::vector<std::string>& entries) {
                for (const std::string& entry : entries)
                    options.shapes.push_back(parse_shape("--input-shape", entry, -1));
            },
            "MXNet: shape of an input, -1 for what is open; may be repeated")
        ->type_name("NAME=DIMS")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

LoadOptions for_file(const std::string& path, const LoadOptions& options) {
    const ModelFormat format = format_of(path);
    LoadOptions fitting;
    if (format == ModelFormat::mxnet) fitting.shapes = options.shapes;
    if (format != ModelFormat::mxnet && format != ModelFormat::onnx) {
        fitting = options;
        fitting.shapes.clear();
    }
    return fitting;
}

void check_output(const std::string& model, const std::string& output) {
    const ModelFormat format = format_of(model);
    if (output.ends_with(kSymbol))
        require(format == ModelFormat::mxnet, "{}: only models of MXNet can be written for it", output);
    if (is_graph_def(output))
        require(format == ModelFormat::graph_def || format == ModelFormat::saved_model,
                "{}: only models of TensorFlow can be written for it", output);
}

std::string save_as(const QuantizedModel& model, const Origin& origin, const std::string& output) {
    check_output(origin.model, output);
    if (output.ends_with(kSymbol)) {
        mxnet::export_model(model, origin.model, output.substr(0, output.size() - kSymbol.size()));
        return {};
    }
    if (is_graph_def(output)) return save_graph_def(model.plan, origin, output);
    save(model, output);
    return {};
}

}  // namespace kilter::cli
