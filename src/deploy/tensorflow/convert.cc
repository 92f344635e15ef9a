// The flow: optimize, find what can run on integers, learn the ranges, write.
#include <algorithm>
#include <cmath>
#include <regex>

#include <unistd.h>

#include "base/fail.h"
#include "deploy/tensorflow/calibration_log.h"
#include "deploy/tensorflow/integer_graph.h"
#include "deploy/tensorflow/shell.h"
#include "formats/tensorflow/graph_def.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/rewrites/rewrites.h"
#include "kilter/deploy/tensorflow.h"
#include "kilter/engine/program.h"

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
        TfGraph graph = read_graph_def(options_.input_graph);
        try {
            optimize_for_quantization(graph, options_.inputs, options_.outputs);
        } catch (const Error& error) {
            throw error.in(options_.input_graph.string());
        }
        if (options_.debug) write_graph_def(graph, folder_ / "fp32_optimized_graph.pb");
        if (!options_.fused_fp32.empty()) write_graph_def(graph, options_.fused_fp32);
        const IslandOptions islands{options_.inputs, options_.outputs, options_.excluded_ops,
                                    options_.excluded_nodes, options_.per_channel};
        check_exclusions(graph);
        const Islands found = find_islands(graph, islands);
        if (found.fused.empty())
            throw Error(fmt::format("{}: there is nothing to quantize", options_.input_graph.string()),
                        found.left_out.empty()
                            ? "it has no convolution or product with constant weights"
                            : fmt::format("'{}': {}", found.left_out[0].first, found.left_out[0].second));
        const std::vector<std::string> tensors = tensors_to_observe(found);
        const Ranges ranges = combine(observe(graph, tensors), tensors, options_.algorithm);
        say("quantizing");
        const auto keep = [&](const TfGraph& intermediate) {
            if (options_.debug) write_graph_def(intermediate, folder_ / "int8_frozen_range_graph.pb");
        };
        IntegerReport written = write_integer_graph(graph, islands, ranges, keep);
        write_graph_def(graph, report_.output_graph);
        for (IntegerReport::Entry& entry : written.operators)
            report_.operators.push_back({entry.name, entry.op, entry.integer, entry.note});
        report_.quantize = written.quantize;
        report_.dequantize = written.dequantize;
        report_.tensors = tensors.size();
        return std::move(report_);
    }

  private:
    void say(const std::string& what) const {
        if (options_.progress) options_.progress(what);
    }

    // A name that matches nothing is a slip: the user believes that something was spared.
    void check_exclusions(const TfGraph& graph) const {
        for (const std::string& name : options_.excluded_nodes)
            if (graph.find(name) == nullptr && read_graph_def(options_.input_graph).find(name) == nullptr)
                throw Error(
                    fmt::format("{}: there is no node '{}' to exclude", options_.input_graph.string(), name),
                    "names are those of the graph, without ':0'");
    }

    BatchLog observe(const TfGraph& graph, const std::vector<std::string>& tensors) {
        BatchLog log = options_.samples ? run_samples(graph, tensors) : run_command(graph, tensors);
        report_.batches = log.empty() ? 0 : SIZE_MAX;
        for (const auto& [name, batches] : log) report_.batches = std::min(report_.batches, batches.size());
        return log;
    }

    // kilter runs the graph itself, with all that is to be observed as outputs.
    BatchLog run_samples(const TfGraph& graph, const std::vector<std::string>& tensors) {
        std::vector<std::string> computed;
        for (const std::string& tensor : tensors)
            if (std::ranges::find(options_.inputs, tensor) == options_.inputs.end())
                computed.push_back(tensor);
        const Program program(lower(graph, {options_.inputs, computed}));
        BatchLog log;
        while (const std::optional<std::vector<Tensor>> sample = options_.samples()) {
            require(sample->size() == options_.inputs.size(), "a sample has {} arrays for {} inputs",
                    sample->size(), options_.inputs.size());
            std::vector<Tensor> feeds;
            for (const Port& port : program.inputs()) {
                const auto found = std::ranges::find(options_.inputs, port.name);
                require(found != options_.inputs.end(), "there is no sample for input '{}'", port.name);
                feeds.push_back((*sample)[static_cast<size_t>(found - options_.inputs.begin())]);
            }
            const std::vector<Tensor> results = program.run(feeds);
            for (size_t i = 0; i < computed.size(); ++i) log[computed[i]].push_back(extremes(results[i]));
            for (size_t i = 0; i < options_.inputs.size(); ++i)
                if (std::ranges::find(tensors, options_.inputs[i]) != tensors.end())
                    log[options_.inputs[i]].push_back(extremes((*sample)[i]));
        }
        require(!log.empty(), "there are no samples to calibrate with");
        return log;
    }

    static Interval extremes(const Tensor& tensor) {
        Interval range{INFINITY, -INFINITY};
        for (const float value : tensor.as<float>()) {
            // NaN compares as false both ways and must not go unseen.
            if (!(value >= range.min)) range.min = value;
            if (!(value <= range.max)) range.max = value;
        }
        return range;
    }

    BatchLog run_command(const TfGraph& graph, const std::vector<std::string>& tensors) {
        if (options_.calibration_command.empty())
            throw Error(
                "there is no calibration command",
                "give the command that runs the model on a few batches, with {} for the graph's path");
        TfGraph logging = graph;
        insert_prints(logging, tensors);
        const std::string name =
            options_.debug ? "int8_logged_graph.pb" : fmt::format(".int8_logged_graph.{}.pb", ::getpid());
        const TemporaryFile file(fs::absolute(folder_ / name), options_.debug);
        write_graph_def(logging, file.path());
        const std::string command = calibration_command(options_.calibration_command, file.path());
        say(fmt::format("calibrating: {}", command));
        const ShellResult result = run_shell(command);
        if (result.status != 0)
            throw Error(
                fmt::format("the calibration command failed with status {}: {}", result.status, command),
                last_lines(result.err.empty() ? result.out : result.err, 12));
        BatchLog log;
        parse_log(result.out, log);
        parse_log(result.err, log);
        if (log.empty())
            throw Error(fmt::format("the calibration command printed no ranges: {}", command),
                        "does it run the graph that it is given, and let stderr through?");
        return log;
    }

    const ConvertOptions& options_;
    fs::path folder_;
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
