// kilter quantize: an FP32 model and a few samples become an INT8 model.
#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/output_file.h"
#include "cli/choices.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "kilter/calibration/calibrate.h"
#include "kilter/formats/load.h"
#include "kilter/formats/mxnet.h"
#include "kilter/formats/onnx.h"
#include "kilter/quantization/quantize.h"
#include "report/text.h"

namespace kilter::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
    std::string model, output;
    LoadOptions load;
    SampleArguments samples{.samples = 100};
    ChoiceArguments choices;
    std::string plan, save_plan;
    int threads = 0;
    int instances = 1;
    bool json = false;
};

std::string read_text(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    require(file.good(), "{}: cannot read the file", path);
    return text.str();
}

QuantizeOptions parsed(const Arguments& arguments) {
    QuantizeOptions options = arguments.choices.options();
    if (!arguments.plan.empty())
        options.plan = about(arguments.plan, [&] { return Plan::from_json(read_text(arguments.plan)); });
    return options;
}

Stats calibrate_on(const Model& prepared, const Arguments& arguments, ProgressLine& line, int64_t& samples) {
    line.show("compiling");
    const int threads =
        arguments.threads > 0 ? arguments.threads : std::max(1, available_cores() / arguments.instances);
    // The names of the prepared graph are what the statistics are about: it runs as it stands.
    const Program program(clone(prepared), {.threads = threads, .optimize = false});
    Loader loader = arguments.samples.open(program.inputs());
    samples = loader.samples();
    int64_t taken = 0;
    const SampleSource source = [&]() -> std::optional<std::vector<Tensor>> {
        InterruptScope::check();
        std::optional<Batch> batch = loader.next();
        if (!batch) return std::nullopt;
        taken += batch->size();
        return std::move(batch->inputs);
    };
    const auto progress = [&](int64_t) {
        line.show(fmt::format("calibrating: {} of {} samples", taken, loader.samples()));
    };
    return calibrate(program, source, {arguments.instances, progress});
}

// Of all files of a model: external data, parameters, what a SavedModel's folder holds.
size_t file_bytes(const std::string& path) {
    std::vector<std::filesystem::path> files{path, path + ".data"};
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
        using Walk = std::filesystem::recursive_directory_iterator;
        files.assign(Walk(path, error), Walk());
    } else if (mxnet::is_model(path)) {
        const mxnet::Files parts = mxnet::find_files(path);
        files = {parts.symbol, parts.params};
    }
    size_t bytes = 0;
    for (const std::filesystem::path& file : files) {
        const uintmax_t size =
            std::filesystem::is_regular_file(file, error) ? std::filesystem::file_size(file, error) : 0;
        if (!error) bytes += size;
    }
    return bytes;
}

// Operators of one type and fate are one line.
std::string operator_table(const QuantizeReport& report) {
    struct Fate {
        size_t count = 0;
        std::vector<std::string> names;
    };
    std::map<std::tuple<Precision, std::string, std::string>, Fate> fates;
    for (const OperatorReport& entry : report.operators) {
        Fate& fate = fates[{entry.precision, entry.op, entry.reason}];
        ++fate.count;
        if (fate.names.size() < 3) fate.names.push_back(entry.name);
    }
    std::vector<std::vector<std::string>> rows{{"precision", "operator", "count", "why", "names"}};
    for (const auto& [key, fate] : fates) {
        const auto& [precision, op, reason] = key;
        std::string names = fmt::format("{}", fmt::join(fate.names, ", "));
        if (fate.count > fate.names.size()) names += ", …";
        rows.push_back({std::string(name(precision)), op, fmt::format("{}", fate.count), reason,
                        precision == Precision::int8 && reason.empty() ? "" : names});
    }
    return table(rows, {2}, "");
}

void print_json(const Arguments& arguments, const QuantizedModel& quantized, int64_t samples) {
    Json operators = Json::array();
    for (const OperatorReport& entry : quantized.report.operators)
        operators.push_back({{"name", entry.name},
                             {"op", entry.op},
                             {"precision", name(entry.precision)},
                             {"reason", entry.reason}});
    Json values = Json::array();
    for (const ValueReport& entry : quantized.report.values)
        values.push_back({{"name", entry.value},
                          {"dtype", name(entry.params.dtype)},
                          {"min", entry.range.min},
                          {"max", entry.range.max},
                          {"scale", entry.params.scales[0]},
                          {"zero_point", entry.params.zero_points[0]}});
    const Json report{{"model", arguments.model},
                      {"output", arguments.output},
                      {"samples", samples},
                      {"plan_hash", fmt::format("{:016x}", quantized.plan.hash())},
                      {"bytes_before", file_bytes(arguments.model)},
                      {"bytes_after", file_bytes(arguments.output)},
                      {"notes", quantized.report.notes},
                      {"operators", operators},
                      {"values", values}};
    fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_text(const Arguments& arguments, const QuantizedModel& quantized, int64_t samples,
                const std::string& remark) {
    const auto before = static_cast<double>(file_bytes(arguments.model));
    const auto after = static_cast<double>(file_bytes(arguments.output));
    const auto integer =
        std::ranges::count(quantized.report.operators, Precision::int8, &OperatorReport::precision);
    fmt::print("{}", operator_table(quantized.report));
    for (const std::string& note : quantized.report.notes) fmt::print("{}\n", note);
    fmt::print("\nquantized   {} of {} operators, {} on {} samples\n", integer,
               quantized.report.operators.size(),
               arguments.plan.empty() ? arguments.choices.calibration : "by the plan", samples);
    fmt::print("size        {} → {} ({:.2f}x)\n", short_bytes(before), short_bytes(after),
               before / std::max(after, 1.0));
    fmt::print("{}written     {}\n", remark, arguments.output);
}

Origin origin_of(const Arguments& arguments, const std::vector<Port>& inputs) {
    Origin origin{arguments.model, arguments.load, {}, {}};
    for (const Port& port : inputs) origin.inputs.push_back(port.name);
    origin.calibrate = [&arguments, inputs]() -> SampleSource {
        const auto loader = std::make_shared<Loader>(arguments.samples.open(inputs));
        return [loader]() -> std::optional<std::vector<Tensor>> {
            InterruptScope::check();
            std::optional<Batch> batch = loader->next();
            if (!batch) return std::nullopt;
            return std::move(batch->inputs);
        };
    };
    return origin;
}

void run(const Arguments& arguments) {
    if (arguments.samples.sources.empty())
        throw CLI::ValidationError("--data", "samples to calibrate with are missing");
    const QuantizeOptions options = parsed(arguments);
    check_output(arguments.model, arguments.output);
    int64_t samples = 0;
    std::string remark;
    const QuantizedModel quantized = [&] {
        const InterruptScope interrupt;
        ProgressLine line;
        line.show("reading");
        Model model = load_model(arguments.model, arguments.load);
        const std::vector<Port> inputs = Program(clone(model), {.optimize = false}).inputs();
        const auto calibrate = [&](const Model& prepared) {
            return calibrate_on(prepared, arguments, line, samples);
        };
        QuantizedModel result =
            about(arguments.model, [&] { return quantize(std::move(model), calibrate, options); });
        InterruptScope::check();
        line.show("writing");
        remark = save_as(result, origin_of(arguments, inputs), arguments.output);
        if (!arguments.save_plan.empty()) {
            OutputFile file(arguments.save_plan);
            file.write(result.plan.json());
            file.commit();
        }
        return result;
    }();
    arguments.json ? print_json(arguments, quantized, samples)
                   : print_text(arguments, quantized, samples, remark);
}

}  // namespace

void add_quantize(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("quantize", "Turn an FP32 model into an INT8 model");
    command->add_option("MODEL", arguments->model, kModelFile)->required()->type_name("");
    add_load_options(*command, arguments->load);
    command->add_option("-o,--output", arguments->output, kOutputFile)->required()->type_name("OUT");
    add_sample_options(*command, arguments->samples, "Calibrate with the first N samples (default 100)");
    add_choice_options(*command, arguments->choices);
    command->add_option("--plan", arguments->plan, "Use this plan instead of the choices above")
        ->type_name("FILE");
    command->add_option("--save-plan", arguments->save_plan, "Write the plan as JSON, to edit and use again")
        ->type_name("FILE");
    command
        ->add_option("--threads", arguments->threads, "Threads of each instance (default: the cores, shared)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096).description(""));
    command->add_option("--instances", arguments->instances, "Calibration runs side by side (default 1)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024).description(""));
    command->add_flag("--json", arguments->json, "Print every operator and value as JSON");
    command->add_flag_callback(
        "--capabilities",
        [] {
            fmt::print("{}", capability_table());
            throw CLI::Success();
        },
        "Print what can be quantized how, and exit");
    command->footer(
        "Examples:\n  kilter quantize model.onnx --data x.npy -o int8.onnx --exclude 'type:Add' --exclude 'head/*'\n"
        "  kilter quantize net.onnx --data photos/ --scale 1/255 --mean .485,.456,.406 --std .229,.224,.225 -o q.onnx");
    command->callback([arguments] { run(*arguments); });
}

}  // namespace kilter::cli
