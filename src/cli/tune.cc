// kilter tune: the fastest INT8 model that keeps a promise about accuracy.
#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "base/fail.h"
#include "cli/choices.h"
#include "cli/command.h"
#include "cli/evaluation.h"
#include "cli/interrupt.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "kilter/formats/load.h"
#include "kilter/tuning/strategy.h"
#include "report/deploy.h"
#include "report/study.h"

namespace kilter::cli {
namespace {

struct Arguments {
    std::string model, output;
    LoadOptions load;
    std::string model_of_config;  // --model beside a YAML file
    EvaluationArguments evaluation;
    std::vector<std::string> calibration_data;
    int64_t calibration_samples = 0;  // 0: not said
    ChoiceArguments choices;
    std::string max_loss, objective, strategy, workspace;
    double timeout = -1;
    int max_trials = 0;
    int64_t seed = -1;
    int threads = 0;
    bool performance_only = false, no_early_rejection = false, resume = false, json = false;
};

bool is_config(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

// A folder of its own for every study, so that two never meet.
std::filesystem::path fresh_workspace(const std::string& model) {
    const std::string stem = std::filesystem::path(model).stem().string();
    for (int i = 1;; ++i) {
        const std::filesystem::path path =
            std::filesystem::path("kilter_workspace") / (i == 1 ? stem : fmt::format("{}-{}", stem, i));
        if (!std::filesystem::exists(path)) return path;
    }
}

// What is going on, how far it is and how long it will still take.
class Display {
  public:
    void working(const std::string& what, int64_t done, int64_t of) {
        InterruptScope::check();
        if (what != what_) {
            what_ = what;
            started_ = std::chrono::steady_clock::now();
        }
        std::string text = what;
        if (of > 0) {
            const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
            text += fmt::format(": {} of {}", done, of);
            if (done > 0 && seconds > 1)
                text += fmt::format(", {:.0f} s left",
                                    seconds / static_cast<double>(done) * static_cast<double>(of - done));
        }
        line_.show(text);
    }
    // One line per result; on standard error, since standard output belongs to the result.
    void print(const std::string& text) {
        line_.clear();
        std::fputs(text.c_str(), stderr);
        std::fflush(stderr);
    }
    const std::string& what() const { return what_; }

  private:
    ProgressLine line_;
    std::string what_;
    std::chrono::steady_clock::time_point started_;
};

struct Job {
    std::string model_path;
    LoadOptions load;
    Model model;
    std::function<BatchSource()> calibration;
    std::unique_ptr<Evaluation> evaluation;
    TuneOptions options;
    std::optional<Config> config;
};

// Flags beat the configuration.
void apply_flags(const Arguments& arguments, TuneOptions& options) {
    if (!arguments.max_loss.empty()) options.criterion = Criterion::parse(arguments.max_loss);
    if (!arguments.objective.empty()) options.objective = Objective::parse(arguments.objective);
    if (!arguments.strategy.empty()) options.strategy = arguments.strategy;
    if (arguments.timeout >= 0) options.exit.timeout = arguments.timeout;
    if (arguments.max_trials > 0) options.exit.max_trials = arguments.max_trials;
    if (arguments.performance_only) options.exit.performance_only = true;
    if (arguments.seed >= 0) options.seed = static_cast<uint64_t>(arguments.seed);
    if (arguments.no_early_rejection) options.early_rejection = false;
    if (!arguments.workspace.empty()) options.workspace = arguments.workspace;
    if (arguments.calibration_samples > 0) options.samples = {arguments.calibration_samples};
    options.threads = arguments.threads;
    if (arguments.resume) options.resume = true;
}

Job from_config(const Arguments& arguments, const CLI::App& command,
                const std::function<void(int64_t)>& progress) {
    Job job;
    job.config = read_config(arguments.model);
    job.model_path = arguments.model_of_config.empty() ? job.config->model.path : arguments.model_of_config;
    if (job.model_path.empty())
        throw Error(fmt::format("{}: the configuration does not say which file to tune", arguments.model),
                    "say it with --model FILE, or with model.path in the configuration");
    job.options = tune_options(*job.config);
    apply_flags(arguments, job.options);
    arguments.choices.apply(job.options.quantize, command);
    job.config->quantization.calibration.sampling_sizes = job.options.samples;
    job.load = arguments.load;
    if (job.load.inputs.empty()) job.load.inputs = job.config->model.inputs;
    if (job.load.outputs.empty()) job.load.outputs = job.config->model.outputs;
    job.load = for_file(job.model_path, job.load);
    job.model = load_model(job.model_path, job.load);
    const std::vector<Port> inputs = Program(clone(job.model)).inputs();
    job.evaluation = arguments.evaluation.make(*job.config, inputs, job.options.seed, progress);
    if (arguments.evaluation.samples.sources.empty() && arguments.calibration_data.empty())
        job.calibration = batches_of(calibration_loader(*job.config, inputs));
    return job;
}

Job from_flags(const Arguments& arguments, const std::function<void(int64_t)>& progress) {
    Job job;
    job.model_path = arguments.model;
    apply_flags(arguments, job.options);
    job.options.quantize = arguments.choices.options();
    job.load = arguments.load;
    job.model = load_model(job.model_path, job.load);
    job.evaluation =
        arguments.evaluation.make(Program(clone(job.model)).inputs(), job.options.seed, progress);
    return job;
}

void add_calibration(Job& job, const Arguments& arguments) {
    if (job.calibration) return;
    const SampleArguments& samples = arguments.evaluation.samples;
    const std::vector<Port> inputs = Program(clone(job.model)).inputs();
    SampleArguments unlabelled = samples;
    unlabelled.labels.clear();
    const auto& files = arguments.calibration_data.empty() ? samples.sources : arguments.calibration_data;
    auto loader =
        std::make_shared<Loader>(unlabelled.open(files, inputs,
                                                 {.batch_size = arguments.evaluation.batch(inputs),
                                                  .limit = *std::ranges::max_element(job.options.samples)}));
    job.calibration = batches_of(std::move(loader));
}

Origin origin_of(const Job& job) {
    Origin origin{job.model_path, job.load, {}, {}};
    const std::vector<Port> inputs = Program(clone(job.model), {.optimize = false}).inputs();
    for (const Port& port : inputs) origin.inputs.push_back(port.name);
    origin.calibrate = [&job]() -> SampleSource {
        const int64_t most = *std::ranges::max_element(job.options.samples);
        return [next = job.calibration(), most,
                taken = int64_t{0}]() mutable -> std::optional<std::vector<Tensor>> {
            InterruptScope::check();
            std::optional<Batch> batch = taken < most ? next() : std::nullopt;
            if (!batch) return std::nullopt;
            taken += batch->size();
            return std::move(batch->inputs);
        };
    };
    return origin;
}

void run(const Arguments& arguments, const CLI::App& command) {
    const InterruptScope interrupt;
    Display display;
    const auto evaluating = [&](int64_t samples) {
        InterruptScope::check();
        display.working(display.what().empty() ? "evaluating" : display.what(), samples, 0);
    };
    display.working("reading", 0, 0);
    Job job = is_config(arguments.model) ? from_config(arguments, command, evaluating)
                                         : from_flags(arguments, evaluating);
    check_output(job.model_path, arguments.output);
    add_calibration(job, arguments);
    if (job.options.workspace.empty()) job.options.workspace = fresh_workspace(job.model_path);
    job.options.progress.working = [&](const std::string& what, int64_t done, int64_t of) {
        display.working(what, done, of);
    };
    Outcome fp32;
    job.options.progress.baseline = [&](const Outcome& baseline) {
        fp32 = baseline;
        display.print(baseline_text(baseline));
    };
    job.options.progress.trial = [&](const Trial& trial, const Space& space, const Trial* best) {
        display.print(trial_text(trial, space.summary(trial.candidate), fp32, best));
    };
    const std::filesystem::path workspace = job.options.workspace;
    TuneResult result;
    try {
        result = about(job.model_path,
                       [&] { return tune(job.model, job.calibration, *job.evaluation, job.options); });
    } catch (const Interrupted&) {
        display.print(
            fmt::format("interrupted; --workspace {} --resume goes on from here\n", workspace.string()));
        throw;
    }
    display.working("writing", 0, 0);
    const std::string remark = save_as(result.model, origin_of(job), arguments.output);
    write_deploy_yaml(workspace / "deploy.yaml", arguments.output, job.config ? &*job.config : nullptr,
                      result);
    display.print("");
    if (arguments.json)
        fmt::print("{}\n", result_json(result));
    else
        fmt::print("{}{}written     {}\nworkspace   {}\n", result_text(result), remark, arguments.output,
                   workspace.string());
}

}  // namespace

void add_tune(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("tune", "Find the fastest INT8 model that keeps an accuracy");
    command
        ->add_option("MODEL", arguments->model,
                     "Model file (ONNX, TensorFlow or MXNet), or a YAML configuration")
        ->required()
        ->type_name("");
    command->add_option("-o,--output", arguments->output, kOutputFile)->required()->type_name("OUT");
    command->add_option("--model", arguments->model_of_config, "Model file, beside a YAML configuration")
        ->type_name("FILE");
    add_load_options(*command, arguments->load);
    add_evaluation_options(*command, arguments->evaluation, "Evaluate with N samples only");
    command
        ->add_option("--calibration-data", arguments->calibration_data,
                     "Samples to calibrate with (default: those of --data)")
        ->type_name("PATH")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command
        ->add_option("--calibration-samples", arguments->calibration_samples,
                     "How many of them (default 100)")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 31).description(""));
    command->add_option("--max-loss", arguments->max_loss, "The promise: 1% (default), 0.01, or abs:0.5")
        ->type_name("L");
    command
        ->add_option("--objective", arguments->objective,
                     "performance (default), modelsize, footprint, or A=0.7,B=0.3")
        ->type_name("O");
    command
        ->add_option("--strategy", arguments->strategy,
                     "auto (default), basic, mse, mse_v2, bayesian, random, …")
        ->type_name("S");
    command
        ->add_option("--timeout", arguments->timeout,
                     "Seconds to search for the fastest; 0: stop at the first success")
        ->type_name("S")
        ->check(CLI::NonNegativeNumber.description(""));
    command->add_option("--max-trials", arguments->max_trials, "At most so many (default 100)")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 30).description(""));
    command->add_flag("--performance-only", arguments->performance_only,
                      "Take the first model, whatever its accuracy");
    command->add_flag("--no-early-rejection", arguments->no_early_rejection,
                      "Evaluate hopeless trials to the end, too");
    command->add_option("--seed", arguments->seed, "Of everything random (default 1978)")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber.description(""));
    command
        ->add_option("--threads", arguments->threads, "Threads latency is measured with (default: all cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096).description(""));
    command->add_option("--workspace", arguments->workspace, "Folder of the study (default: a new one)")
        ->type_name("DIR");
    command->add_flag("--resume", arguments->resume, "Go on with the study in --workspace");
    add_choice_options(*command, arguments->choices);
    command->add_flag("--json", arguments->json, "Print the result as JSON");
    command->footer(
        "Examples:\n  kilter tune model.onnx --data val/ --labels labels.txt --max-loss 1% -o int8.onnx\n"
        "  kilter tune conf.yaml --model model.onnx -o int8.onnx");
    command->callback([arguments, command] {
        if (arguments->resume && arguments->workspace.empty() && !is_config(arguments->model))
            throw CLI::ValidationError("--resume", "--workspace must say which study to go on with");
        run(*arguments, *command);
    });
}

}  // namespace kilter::cli
