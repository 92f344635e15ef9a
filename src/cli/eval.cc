// kilter eval: how accurate a model is.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/evaluation.h"
#include "cli/interrupt.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "kilter/formats/load.h"

namespace kilter::cli {
namespace {

struct Arguments {
    std::string model, config;
    LoadOptions load;
    EvaluationArguments evaluation;
    bool json = false;
};

void run(const Arguments& arguments) {
    const InterruptScope interrupt;
    ProgressLine line;
    line.show("reading");
    std::optional<Config> config;
    if (!arguments.config.empty()) config = read_config(arguments.config);
    LoadOptions load = arguments.load;
    if (config && load.inputs.empty()) load.inputs = config->model.inputs;
    if (config && load.outputs.empty()) load.outputs = config->model.outputs;
    const Model model = load_model(arguments.model, config ? for_file(arguments.model, load) : load);
    const std::vector<Port> inputs = Program(clone(model)).inputs();
    const auto progress = [&](int64_t samples) {
        InterruptScope::check();
        line.show(fmt::format("evaluating: {} samples", samples));
    };
    std::unique_ptr<Evaluation> evaluation;
    std::vector<std::string> names = arguments.evaluation.metrics;
    if (config) {
        evaluation = arguments.evaluation.make(*config, inputs, 0, progress);
        if (names.empty())
            for (const MetricConfig& metric : config->accuracy.metrics)
                names.push_back(metric.component.name);
    } else {
        evaluation = arguments.evaluation.make(inputs, 0, progress);
        if (names.empty()) names.emplace_back("topk");
    }
    const Program program(clone(model), {.threads = evaluation->threads()});
    const EvaluationRun result = about(arguments.model, [&] { return evaluation->run(program, nullptr); });
    line.clear();
    if (arguments.json) {
        nlohmann::ordered_json metrics;
        for (size_t i = 0; i < names.size(); ++i) metrics[names[i]] = result.accuracy[i];
        fmt::print("{}\n",
                   nlohmann::ordered_json{
                       {"model", arguments.model}, {"samples", result.samples}, {"metrics", metrics}}
                       .dump(2));
        return;
    }
    for (size_t i = 0; i < names.size(); ++i) fmt::print("{:11} {:.4f}\n", names[i], result.accuracy[i]);
    fmt::print("{:11} {}\n", "samples", result.samples);
}

}  // namespace

void add_eval(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("eval", "Measure the accuracy of a model");
    command->add_option("MODEL", arguments->model, kModelFile)->required()->type_name("");
    add_load_options(*command, arguments->load);
    command->add_option("--config", arguments->config, "YAML whose evaluation.accuracy says how")
        ->type_name("FILE");
    add_evaluation_options(*command, arguments->evaluation, "Evaluate with N samples only");
    command->add_flag("--json", arguments->json, "Print the result as JSON");
    command->footer(
        "Example:\n  kilter eval model.onnx --data val/ --labels labels.txt --metric topk --metric topk:5");
    command->callback([arguments] { run(*arguments); });
}

}  // namespace kilter::cli
