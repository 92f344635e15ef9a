// kilter diff: where two models drift apart, operator by operator.
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "kilter/engine/bench.h"
#include "kilter/engine/compare.h"
#include "kilter/formats/load.h"
#include "report/text.h"

namespace kilter::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
    std::string a, b;
    LoadOptions load;
    SampleArguments samples{.samples = 10};
    int64_t rows = 20;
    int threads = 0;
    bool json = false;
};

std::string decibels(double snr) { return std::isfinite(snr) ? fmt::format("{:.1f}", snr) : "equal"; }

Json to_json(const std::vector<Drift>& drifts) {
    Json list = Json::array();
    for (const Drift& drift : drifts) {
        Json snr;  // null: equal, JSON has no infinity
        if (std::isfinite(drift.snr_db)) snr = drift.snr_db;
        list.push_back({{"name", drift.name},
                        {"op", drift.op},
                        {"snr_db", snr},
                        {"max_error", drift.max_error},
                        {"max_signal", drift.max_signal}});
    }
    return list;
}

void print_drifts(const std::vector<Drift>& drifts, size_t rows, const char* what) {
    std::vector<std::vector<std::string>> lines{{"SNR dB", "largest error", "of", what, "name"}};
    for (const Drift& drift : drifts) {
        if (lines.size() > rows) break;
        lines.push_back({decibels(drift.snr_db), fmt::format("{:.4g}", drift.max_error),
                         fmt::format("{:.4g}", drift.max_signal), drift.op, drift.name});
    }
    fmt::print("{}", table(lines, {0, 1, 2}, ""));
    if (drifts.size() > rows) fmt::print("… and {} more\n", drifts.size() - rows);
}

std::unique_ptr<Program> load(const std::string& path, const LoadOptions& options, int threads) {
    Model model = load_model(path, for_file(path, options));
    return about(
        path, [&] { return std::make_unique<Program>(std::move(model), EngineOptions{.threads = threads}); });
}

void run(const Arguments& arguments) {
    ProgressLine line;
    line.show("compiling");
    const auto a = load(arguments.a, arguments.load, arguments.threads);
    const auto b = load(arguments.b, arguments.load, arguments.threads);
    Comparison comparison(*a, *b);
    if (arguments.samples.sources.empty()) {
        comparison.add(made_up_inputs(a->inputs(), resolve_shapes(a->inputs(), {})));
    } else {
        Loader loader = arguments.samples.open(a->inputs());
        int64_t done = 0;
        while (const std::optional<Batch> batch = loader.next()) {
            line.show(fmt::format("comparing: {} of {} samples", done, loader.samples()));
            comparison.add(batch->inputs);
            done += batch->size();
        }
    }
    line.clear();
    if (arguments.json) {
        const Json report{{"a", arguments.a},
                          {"b", arguments.b},
                          {"outputs", to_json(comparison.outputs())},
                          {"operators", to_json(comparison.operators())}};
        fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
        return;
    }
    const std::vector<Drift> outputs = comparison.outputs();
    print_drifts(outputs, outputs.size(), "output");
    fmt::print("\n");
    print_drifts(comparison.operators(), static_cast<size_t>(arguments.rows), "operator");
}

}  // namespace

void add_diff(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(
        "diff", "Show where two models drift apart: signal-to-noise, worst operator first");
    command->add_option("A", arguments->a, "Model file (ONNX or TensorFlow), the truth")
        ->required()
        ->type_name("");
    command->add_option("B", arguments->b, "Model file with the same inputs and outputs, e.g. quantized")
        ->required()
        ->type_name("");
    add_load_options(*command, arguments->load);
    add_sample_options(*command, arguments->samples, "Compare on the first N samples (default 10)");
    command->add_option("--rows", arguments->rows, "List so many operators (default 20)")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 31).description(""));
    command->add_option("--threads", arguments->threads, "Threads of a run (default: all cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096).description(""));
    command->add_flag("--json", arguments->json, "Print everything as JSON");
    command->footer(
        "Example:\n  kilter diff model.onnx int8.onnx --data x.npy\n\n"
        "Without --data it uses one made-up sample. An operator's figure includes the noise of all before it.");
    command->callback([arguments] { run(*arguments); });
}

}  // namespace kilter::cli
