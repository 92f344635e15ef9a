// kilter tf: TensorFlow graphs become INT8 graphs that stock TensorFlow runs; calibrated by the user's own inference command.
#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/fail.h"
#include "cli/command.h"
#include "cli/zoo.h"
#include "kilter/deploy/tensorflow.h"
#include "report/text.h"

namespace kilter::cli {
namespace {

using tensorflow::ConvertOptions;
using tensorflow::ConvertReport;

// "a, b,c": names without the spaces around them; empty ones do not count.
std::vector<std::string> names(const std::string& list) {
    std::vector<std::string> result;
    size_t start = 0;
    while (start <= list.size()) {
        const size_t comma = std::min(list.find(',', start), list.size());
        std::string name = list.substr(start, comma - start);
        const size_t first = name.find_first_not_of(" \t");
        if (first != std::string::npos)
            result.push_back(name.substr(first, name.find_last_not_of(" \t") - first + 1));
        start = comma + 1;
    }
    return result;
}

std::string truth(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    if (text == "true" || text == "1" || text == "yes" || text == "on") return "true";
    if (text == "false" || text == "0" || text == "no" || text == "off") return "false";
    throw CLI::ValidationError(fmt::format("'{}' is neither true nor false", text));
}

// An option that takes a truth value and means true without one.
void add_truth(CLI::App& command, const std::string& name, bool& value, const std::string& text) {
    command.add_option(name, value, text)
        ->expected(0, 1)
        ->default_str("true")
        ->transform(truth)
        ->option_text("[true|false]");
}

void print_report(const ConvertReport& report) {
    std::map<std::tuple<bool, std::string, std::string>, std::vector<std::string>> fates;
    for (const auto& entry : report.operators)
        fates[{!entry.integer, entry.op, entry.note}].push_back(entry.name);
    std::vector<std::vector<std::string>> rows{{"precision", "operator", "count", "note", "names"}};
    size_t integer = 0;
    for (const auto& [key, found] : fates) {
        const auto& [floating, op, note] = key;
        if (!floating) integer += found.size();
        std::string some = floating ? found[0] : "";
        if (floating && found.size() > 1) some += ", …";
        rows.push_back({floating ? "fp32" : "int8", op, fmt::format("{}", found.size()), note, some});
    }
    fmt::print("{}\n", table(rows, {2}, ""));
    fmt::print("quantized   {} of {} operators; {} times to integers, {} times back\n", integer,
               report.operators.size(), report.quantize, report.dequantize);
    fmt::print("calibrated  {} tensors, {} batches\n", report.tensors, report.batches);
    fmt::print("written     {}\n", report.output_graph.string());
}

struct QuantizeArguments {
    std::string input_graph, output_graph, callback, inputs, outputs, excluded_ops, excluded_nodes,
        fused_fp32;
    std::string algorithm = "DIRECT";
    bool per_channel = false;
    bool debug = false;
};

void run_quantize(const QuantizeArguments& arguments) {
    ConvertOptions options;
    options.input_graph = arguments.input_graph;
    options.output_graph = arguments.output_graph;
    options.inputs = names(arguments.inputs);
    options.outputs = names(arguments.outputs);
    options.excluded_ops = names(arguments.excluded_ops);
    options.excluded_nodes = names(arguments.excluded_nodes);
    options.per_channel = arguments.per_channel;
    options.algorithm = tensorflow::range_rule(arguments.algorithm);
    options.calibration_command = arguments.callback;
    options.debug = arguments.debug;
    options.fused_fp32 = arguments.fused_fp32;
    print_report(tensorflow::convert_graph(options));
}

void add_tf_quantize(CLI::App& tf) {
    auto arguments = std::make_shared<QuantizeArguments>();
    CLI::App* command = tf.add_subcommand("quantize", "Make an INT8 GraphDef from a frozen FP32 GraphDef");
    command->add_option("--input_graph", arguments->input_graph, "The frozen FP32 graph (.pb)")->required();
    command->add_option("--output_graph", arguments->output_graph,
                        "Where the INT8 graph goes; default: int8_final_fused_graph.pb beside the input");
    command
        ->add_option("--callback", arguments->callback,
                     "Runs inference on a few batches with the graph whose path stands for {}")
        ->required();
    command->add_option("--inputs", arguments->inputs, "Names of the input nodes, separated by commas")
        ->required();
    command->add_option("--outputs", arguments->outputs, "Names of the output nodes, separated by commas")
        ->required();
    add_truth(*command, "--per_channel", arguments->per_channel,
              "One scale per output channel of the weights");
    command->add_option("--excluded_ops", arguments->excluded_ops, "Operator types to leave in FP32");
    command->add_option("--excluded_nodes", arguments->excluded_nodes, "Nodes to leave in FP32");
    command
        ->add_option(
            "--algorithm", arguments->algorithm,
            "Ranges over batches: DIRECT (5th and 95th percentile), MA (moving average), MINMAX; or from how "
            "often values occur, which runs the command twice: KL, MSE, PERCENTILE[:P]")
        ->capture_default_str();
    command->add_option("--fused_fp32", arguments->fused_fp32, "Write the fused FP32 graph here too");
    add_truth(*command, "--debug", arguments->debug, "Keep the intermediate graphs beside the output");
    command->footer(
        "Example:\n"
        "  kilter tf quantize --input_graph fp32.pb --output_graph int8.pb --inputs input --outputs predict \\\n"
        "      --callback 'python infer.py --input_graph={}'");
    command->callback([arguments] { run_quantize(*arguments); });
}

struct ZooArguments {
    std::string model, in_graph, out_graph, data_location, models_zoo, models_source, config;
    std::string python = "python3";
    bool debug = false;
};

void run_zoo(const ZooArguments& arguments) {
    const ZooModel model = find_zoo_model(arguments.model, arguments.config);
    ConvertOptions options;
    options.input_graph = arguments.in_graph;
    options.output_graph = arguments.out_graph;
    options.inputs = model.inputs;
    options.outputs = model.outputs;
    options.excluded_ops = model.excluded_ops;
    options.excluded_nodes = model.excluded_nodes;
    options.per_channel = model.per_channel;
    options.debug = arguments.debug;
    options.calibration_command = launch_command(
        model, {arguments.python, arguments.models_zoo, arguments.data_location, arguments.models_source});
    fmt::print("Model Config: MODEL_NAME:{}\n", model.name);
    fmt::print("Model Config: INPUT_NODE_LIST:{}\n", fmt::join(model.inputs, ","));
    fmt::print("Model Config: OUTPUT_NODE_LIST:{}\n", fmt::join(model.outputs, ","));
    fmt::print("Model Config: EXCLUDED_OPS_LIST:{}\n", fmt::join(model.excluded_ops, ","));
    fmt::print("Model Config: EXCLUDED_NODE_LIST:{}\n", fmt::join(model.excluded_nodes, ","));
    fmt::print("Model Config: PER_CHANNEL_FLAG:{}\n", model.per_channel);
    fmt::print("Inference Calibration Command: {}\n", options.calibration_command);
    print_report(tensorflow::convert_graph(options));
}

void add_tf_zoo(CLI::App& tf) {
    auto arguments = std::make_shared<ZooArguments>();
    CLI::App* command =
        tf.add_subcommand("zoo", "Quantize a model of Intel's Model Zoo with the zoo's own inference");
    command
        ->add_option("--model", arguments->model,
                     fmt::format("One of {}", fmt::join(zoo_model_names(), ", ")))
        ->required();
    command->add_option("--in_graph", arguments->in_graph, "The frozen FP32 graph")->required();
    command->add_option("--out_graph", arguments->out_graph,
                        "Where the INT8 graph goes; default: int8_final_fused_graph.pb beside the input");
    command->add_option("--data_location", arguments->data_location, "The dataset");
    command->add_option("--models_zoo_location", arguments->models_zoo, "Checkout of the Model Zoo")
        ->required();
    command->add_option("--models_source_dir", arguments->models_source,
                        "Checkout of tensorflow/models, for models that need it");
    command->add_option("--config", arguments->config, "Another file of models, of the same form");
    command->add_option("--python", arguments->python, "Interpreter for the zoo's script")
        ->capture_default_str();
    add_truth(*command, "--debug", arguments->debug, "Keep the intermediate graphs beside the output");
    command->footer(
        "Example:\n"
        "  kilter tf zoo --model resnet50 --in_graph fp32.pb --data_location imagenet --models_zoo_location models");
    command->callback([arguments] { run_zoo(*arguments); });
}

}  // namespace

void add_tf(CLI::App& app) {
    CLI::App* tf = app.add_subcommand("tf", "Make INT8 graphs for TensorFlow from frozen FP32 graphs");
    tf->require_subcommand(1);
    tf->footer("Example:\n  kilter tf quantize --help");
    add_tf_quantize(*tf);
    add_tf_zoo(*tf);
}

}  // namespace kilter::cli
