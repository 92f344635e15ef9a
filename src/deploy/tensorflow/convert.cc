// The flow: optimize, find what can run on integers, learn the ranges, write.
#include <algorithm>
#include <cmath>
#include <regex>

#include <unistd.h>

#include "base/fail.h"
#include "deploy/tensorflow/calibration_log.h"
#include "deploy/tensorflow/shell.h"
#include "kilter/deploy/tensorflow.h"

namespace kilter::tensorflow {
namespace {

namespace fs = std::filesystem;

// The last lines of what a command said, for messages.
std::string last_lines(const std::string& text, int lines) {
    size_t start = text.size();
    while (start > 0 && (text[start - 1] == '\n' || text[start - 1] == ' ')) --start;
    const size_t end = start;
    for (int i = 0; i < lines && start > 0; ++i) {
        const size_t newline = text.rfind('\n', start - 1);
        start = newline == std::string::npos ? 0 : newline;
    }
    return text.substr(start, end - start);
}

// A file that is gone again when nobody needs it any more.
class TemporaryFile {
  public:
    explicit TemporaryFile(fs::path path, bool keep) : path_(std::move(path)), keep_(keep) {}
    ~TemporaryFile() {
        std::error_code ignored;
        if (!keep_) fs::remove(path_, ignored);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
    bool keep_;
};

fs::path default_output(const fs::path& input) { return input.parent_path() / "int8_final_fused_graph.pb"; }

class Conversion {
  public:
    explicit Conversion(const ConvertOptions& options) : options_(options) {
        report_.output_graph =
            options.output_graph.empty() ? default_output(options.input_graph) : options.output_graph;
        folder_ = report_.output_graph.parent_path();
    }

    ConvertReport run() {
        require(!options_.inputs.empty() && !options_.outputs.empty(),
                "the names of inputs and outputs are needed: `kilter inspect` lists the possible ones");
        say("reading");
        const QuantizableGraph graph(options_.input_graph, {.inputs = options_.inputs,
                                                            .outputs = options_.outputs,
                                                            .excluded_ops = options_.excluded_ops,
                                                            .excluded_nodes = options_.excluded_nodes});
        if (options_.debug) graph.fp32().save(folder_ / "fp32_optimized_graph.pb");
        if (!options_.fused_fp32.empty()) graph.fp32().save(options_.fused_fp32);
        const IntegerGraph written = write(graph);
        if (options_.debug) written.unfused.save(folder_ / "int8_frozen_range_graph.pb");
        written.graph.save(report_.output_graph);
        report_.operators = written.operators;
        report_.quantize = written.quantize;
        report_.dequantize = written.dequantize;
        report_.tensors = graph.tensors().size();
        return std::move(report_);
    }

  private:
    void say(const std::string& what) const {
        if (options_.progress) options_.progress(what);
    }

    Choices choices(const QuantizableGraph& graph) const {
        Choices choices;
        OperatorChoice choice;
        choice.weights = options_.per_channel ? Granularity::per_channel : Granularity::per_tensor;
        if (const auto* range = std::get_if<RangeOptions>(&options_.algorithm)) choice.range = *range;
        for (const QuantizableOperator& entry : graph.operators()) choices[entry.name] = choice;
        return choices;
    }

    IntegerGraph write(const QuantizableGraph& graph) {
        if (const auto* rule = std::get_if<BatchRanges>(&options_.algorithm)) {
            const Ranges ranges = combine(extremes(graph), graph.tensors(), *rule);
            say("quantizing");
            return graph.write(choices(graph), ranges);
        }
        const Stats stats = options_.samples ? graph.observe(options_.samples) : counts(graph);
        report_.batches = static_cast<size_t>(stats.samples);
        say("quantizing");
        return graph.write(choices(graph), stats);
    }

    // What every batch showed.
    BatchLog extremes(const QuantizableGraph& graph) {
        BatchLog log;
        if (options_.samples) {
            graph.observe(options_.samples, [&](const std::string& tensor, const Tensor& values) {
                log[tensor].push_back(extremes(tensor, values));
            });
        } else {
            const std::string text = run_command(graph.logging());
            parse_log(text, log);
            if (log.empty()) printed_nothing();
        }
        report_.batches = SIZE_MAX;
        for (const auto& [name, batches] : log) report_.batches = std::min(report_.batches, batches.size());
        return log;
    }

    // Two runs of the command: bins can only be laid between extremes that are known.
    Stats counts(const QuantizableGraph& graph) {
        const Ranges borders = combine(extremes(graph), graph.tensors(), BatchRanges::minmax);
        Stats stats = parse_counts(run_command(graph.counting(borders)), borders);
        if (stats.values.empty()) printed_nothing();
        return stats;
    }

    static Interval extremes(const std::string& name, const Tensor& tensor) {
        Interval range{INFINITY, -INFINITY};
        for (const float value : tensor.as<float>()) {
            require(!std::isnan(value), "tensor '{}' is not a number for some of the samples", name);
            range = {std::min<double>(range.min, value), std::max<double>(range.max, value)};
        }
        return range;
    }

    // What the command says when it runs this graph.
    std::string run_command(const GraphDef& graph) {
        if (options_.calibration_command.empty())
            throw Error(
                "there is no calibration command",
                "give the command that runs the model on a few batches, with {} for the graph's path");
        const std::string name =
            options_.debug ? "int8_logged_graph.pb" : fmt::format(".int8_logged_graph.{}.pb", ::getpid());
        const TemporaryFile file(fs::absolute(folder_ / name), options_.debug);
        graph.save(file.path());
        command_ = calibration_command(options_.calibration_command, file.path());
        say(fmt::format("calibrating: {}", command_));
        const ShellResult result = run_shell(command_);
        if (result.status != 0)
            throw Error(
                fmt::format("the calibration command failed with status {}: {}", result.status, command_),
                last_lines(result.err.empty() ? result.out : result.err, 12));
        return result.out + "\n" + result.err;
    }

    [[noreturn]] void printed_nothing() const {
        throw Error(fmt::format("the calibration command printed no ranges: {}", command_),
                    "does it run the graph that it is given, and let stderr through?");
    }

    const ConvertOptions& options_;
    fs::path folder_;
    std::string command_;  // that ran last
    ConvertReport report_;
};

}  // namespace

std::string calibration_command(const std::string& command, const fs::path& graph) {
    std::string quoted = "'";
    for (const char c : graph.string()) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    quoted += "'";
    // The documented form: whatever graph the option names is replaced.
    static const std::regex option(
        R"(((?:^|\s)(?:--)?in(?:put)?[_-]graph(?:=|\s+))((?:'[^']*'|"[^"]*"|[^\s'"])+))");
    std::smatch match;
    std::string result = command;
    if (const size_t braces = command.find("{}"); braces != std::string::npos)
        return result.replace(braces, 2, quoted);
    if (std::regex_search(command, match, option))
        return match.prefix().str() + match[1].str() + quoted + match.suffix().str();
    return command + " --input_graph=" + quoted;
}

ConvertReport convert_graph(const ConvertOptions& options) { return Conversion(options).run(); }

}  // namespace kilter::tensorflow
