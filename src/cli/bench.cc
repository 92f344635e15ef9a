// kilter bench: how fast a model runs here, as a whole and operator by operator.
#include <algorithm>
#include <memory>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/bench_pair.h"
#include "cli/command.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "cli/shapes.h"
#include "kilter/engine/bench.h"
#include "kilter/formats/load.h"
#include "report/text.h"

namespace kilter::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
    std::string model;
    LoadOptions load;
    std::string other;  // to compare with; may be empty
    ShapeArguments shapes;
    int threads = 0;
    int instances = 1;
    double seconds = 3;
    int64_t iterations = 0;
    bool per_op = false;
    bool json = false;
};

// Images per second rather than runs per second, when all inputs agree on the first dimension.
int64_t samples_per_run(const std::vector<Shape>& shapes) {
    if (shapes.empty() || shapes[0].empty()) return 1;
    const bool agree = std::ranges::all_of(
        shapes, [&](const Shape& shape) { return !shape.empty() && shape[0] == shapes[0][0]; });
    return agree ? shapes[0][0] : 1;
}

std::string operator_table(const std::vector<StepReport>& steps) {
    const double total =
        std::accumulate(steps.begin(), steps.end(), 0.0,
                        [](double sum, const StepReport& step) { return sum + step.milliseconds; });
    std::vector<std::vector<std::string>> rows{{"ms", "share", "operator", "kernel", "result", "name"}};
    for (const StepReport& step : steps)
        rows.push_back({fmt::format("{:.3f}", step.milliseconds),
                        fmt::format("{:.1f} %", total > 0 ? 100 * step.milliseconds / total : 0), step.op,
                        step.kernel, step.shape, step.name});
    rows.push_back({fmt::format("{:.3f}", total), "", "all operators"});
    return table(rows, {0, 1}, "");
}

Json to_json(const std::vector<StepReport>& steps) {
    Json list = Json::array();
    for (const StepReport& step : steps)
        list.push_back({{"name", step.name},
                        {"op", step.op},
                        {"kernel", step.kernel},
                        {"shape", step.shape},
                        {"milliseconds", step.milliseconds}});
    return list;
}

// Instances share the cores unless told otherwise.
int threads_of(const Arguments& arguments) {
    return arguments.threads > 0 ? arguments.threads : std::max(1, available_cores() / arguments.instances);
}

struct Measurement {
    std::vector<Port> inputs;
    std::vector<Shape> shapes;
    int threads = 0;
    BenchResult result;
    std::vector<StepReport> steps;
};

Measurement measure(Model model, const Arguments& arguments) {
    const ShapeOptions options = arguments.shapes.parsed();
    ProgressLine line;
    line.show("compiling");
    const int threads = threads_of(arguments);
    const Program program(std::move(model), {.threads = threads});
    Measurement done{program.inputs(), resolve_shapes(program.inputs(), options), threads, {}, {}};
    const std::vector<Tensor> inputs = made_up_inputs(done.inputs, done.shapes);
    BenchOptions bench_options{arguments.instances, arguments.seconds, arguments.iterations, {}};
    int shown = -1;
    bench_options.progress = [&](double fraction) {
        const int percent = static_cast<int>(100 * fraction);
        if (percent != shown) line.show(fmt::format("measuring: {} %", shown = percent));
    };
    line.show("warming up");
    done.result = bench(program, inputs, bench_options);
    if (arguments.per_op) {
        line.show("measuring every operator");
        done.steps = program.profile(inputs);
    }
    return done;
}

void print_json(const Arguments& arguments, const Measurement& done) {
    Json shapes = Json::object();
    for (size_t i = 0; i < done.shapes.size(); ++i) shapes[done.inputs[i].name] = done.shapes[i];
    const double runs = done.result.runs_per_second();
    Json report{{"model", arguments.model},
                {"shapes", shapes},
                {"threads", done.threads},
                {"instances", arguments.instances},
                {"runs", done.result.milliseconds.size()},
                {"median_ms", done.result.median()},
                {"p90_ms", done.result.percentile(90)},
                {"min_ms", done.result.percentile(0)},
                {"runs_per_second", runs},
                {"samples_per_second", runs * static_cast<double>(samples_per_run(done.shapes))}};
    if (arguments.per_op) report["operators"] = to_json(done.steps);
    fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_text(const Arguments& arguments, const Measurement& done) {
    const double runs = done.result.runs_per_second();
    const int64_t samples = samples_per_run(done.shapes);
    std::string inputs;
    for (size_t i = 0; i < done.shapes.size(); ++i)
        inputs += fmt::format("{}{} {}", i > 0 ? ", " : "", done.inputs[i].name, to_string(done.shapes[i]));
    fmt::print("model       {}\n", arguments.model);
    fmt::print("inputs      {}\n", inputs);
    fmt::print("running     {} instance{} of {} thread{}, {} runs in {:.1f} s\n", arguments.instances,
               arguments.instances == 1 ? "" : "s", done.threads, done.threads == 1 ? "" : "s",
               done.result.milliseconds.size(), done.result.seconds);
    fmt::print("median      {:.3f} ms\n", done.result.median());
    fmt::print("p90         {:.3f} ms\n", done.result.percentile(90));
    fmt::print("throughput  {:.1f} samples/s\n", runs * static_cast<double>(samples));
    if (arguments.per_op) fmt::print("\n{}", operator_table(done.steps));
}

void print_pair_json(const Arguments& arguments, const PairMeasurement& done, int threads) {
    Json operators = Json::array();
    for (const OperatorPair& pair : done.operators)
        operators.push_back({{"name", pair.name},
                             {"op_a", pair.op_a},
                             {"op_b", pair.op_b},
                             {"kernel_a", pair.kernel_a},
                             {"kernel_b", pair.kernel_b},
                             {"milliseconds_a", pair.milliseconds_a},
                             {"milliseconds_b", pair.milliseconds_b},
                             {"conversion", pair.conversion},
                             {"why", pair.why}});
    const Json report{{"a", arguments.model},
                      {"b", arguments.other},
                      {"threads", threads},
                      {"instances", arguments.instances},
                      {"median_ms_a", done.a.median()},
                      {"median_ms_b", done.b.median()},
                      {"ratio", done.ratio()},
                      {"ratios", done.ratios},
                      {"only_a_ms", done.only_a},
                      {"only_b_ms", done.only_b},
                      {"operators", operators}};
    fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string pair_table(std::vector<OperatorPair> pairs) {
    std::vector<std::vector<std::string>> rows{
        {"A ms", "B ms", "A/B", "operator", "in B", "name", "why not faster"}};
    for (const OperatorPair& pair : pairs)
        rows.push_back({fmt::format("{:.3f}", pair.milliseconds_a),
                        fmt::format("{:.3f}", pair.milliseconds_b),
                        fmt::format("{:.2f}", pair.milliseconds_a / std::max(pair.milliseconds_b, 1e-9)),
                        pair.op_a, pair.op_b, pair.name, pair.why});
    return table(rows, {0, 1, 2}, "");
}

void print_pair(const Arguments& arguments, const PairMeasurement& done, int threads) {
    const auto [low, high] = std::ranges::minmax(done.ratios);
    fmt::print("running     {} instance{} of {} thread{}, alternating\n", arguments.instances,
               arguments.instances == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
    fmt::print("A           {:.3f} ms  {}\n", done.a.median(), arguments.model);
    fmt::print("B           {:.3f} ms  {}\n", done.b.median(), arguments.other);
    fmt::print("B is        {:.2f}x as fast ({:.2f} to {:.2f} over {} rounds)\n", done.ratio(), low, high,
               done.ratios.size());
    std::vector<OperatorPair> slow = done.operators;
    if (!arguments.per_op) {
        std::erase_if(slow, [](const OperatorPair& pair) { return pair.why.empty(); });
        const auto lost = [](const OperatorPair& pair) { return pair.milliseconds_b - pair.milliseconds_a; };
        std::ranges::stable_sort(slow, std::greater(), lost);
    }
    if (slow.empty()) {
        fmt::print("\nEvery operator that both have is faster in B.\n");
    } else {
        fmt::print("\n{}\n{}",
                   arguments.per_op ? "operators that both have" : "operators that are not faster in B",
                   pair_table(std::move(slow)));
    }
    fmt::print("without a counterpart: {:.3f} ms in A, {:.3f} ms in B\n", done.only_a, done.only_b);
}

void run_pair(const Arguments& arguments) {
    const ShapeOptions shapes = arguments.shapes.parsed();
    const int threads = threads_of(arguments);
    ProgressLine line;
    line.show("compiling");
    struct Side {
        std::unique_ptr<Program> program;
        std::vector<Tensor> inputs;
    };
    const auto load = [&](const std::string& path, Model model) {
        return about(path, [&] {
            Side side{std::make_unique<Program>(std::move(model), EngineOptions{.threads = threads}), {}};
            const std::vector<Port>& ports = side.program->inputs();
            side.inputs = made_up_inputs(ports, resolve_shapes(ports, shapes));
            return side;
        });
    };
    const Side a =
        load(arguments.model, load_model(arguments.model, for_file(arguments.model, arguments.load)));
    const Model model_b = load_model(arguments.other, for_file(arguments.other, arguments.load));
    const Side b = load(arguments.other, clone(model_b));
    BenchOptions options{arguments.instances, arguments.seconds, arguments.iterations, {}};
    options.progress = [&](double fraction) {
        line.show(fmt::format("measuring: {} %", static_cast<int>(100 * fraction)));
    };
    const PairMeasurement done = measure_pair(*a.program, *b.program, model_b, a.inputs, b.inputs, options);
    line.clear();
    arguments.json ? print_pair_json(arguments, done, threads) : print_pair(arguments, done, threads);
}

void run(const Arguments& arguments) {
    if (!arguments.other.empty()) return run_pair(arguments);
    Model model = load_model(arguments.model, arguments.load);
    const Measurement done = about(arguments.model, [&] { return measure(std::move(model), arguments); });
    arguments.json ? print_json(arguments, done) : print_text(arguments, done);
}

}  // namespace

void add_bench(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("bench", "Measure a model on made-up inputs, or compare two");
    command->add_option("MODEL", arguments->model, kModelFile)->required()->type_name("");
    add_load_options(*command, arguments->load);
    command
        ->add_option("OTHER", arguments->other, "A second one: which is faster, and which operators are not?")
        ->type_name("");
    add_shape_options(*command, arguments->shapes);
    command
        ->add_option("--threads", arguments->threads, "Threads of each instance (default: the cores, shared)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096).description(""));
    command->add_option("--instances", arguments->instances, "Independent runs side by side (default 1)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024).description(""));
    auto* seconds = command->add_option("--seconds", arguments->seconds, "How long to measure (default 3)");
    seconds->type_name("S")->check(CLI::Range(0.01, 86400.0).description(""));
    command->add_option("--iterations", arguments->iterations, "Runs of each instance, instead of a time")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40).description(""))
        ->excludes(seconds);
    command->add_flag("--per-op", arguments->per_op, "Also list every operator with its time and kernel");
    command->add_flag("--json", arguments->json, "Print everything as JSON");
    command->footer(
        "Examples:\n  kilter bench model.onnx --batch 16 --per-op\n  kilter bench model.onnx int8.onnx\n"
        "  kilter bench bert.onnx --shape sequence=128 --instances 2 --threads 1");
    command->callback([arguments] { run(*arguments); });
}

}  // namespace kilter::cli
