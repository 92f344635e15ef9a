// kilter sensitivity: what each operator costs in accuracy and gains in speed.
#include <fmt/format.h>

#include "cli/choices.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_file.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "kilter/formats/load.h"
#include "kilter/tuning/job.h"
#include "report/study.h"

namespace kilter::cli {
namespace {

struct Arguments {
    std::string model;
    LoadOptions load;
    SampleArguments samples{.samples = 100, .batch = 0};
    ChoiceArguments choices;
    int64_t scoring_samples = 32;
    bool json = false;
};

void run(const Arguments& arguments) {
    if (arguments.samples.sources.empty())
        throw CLI::ValidationError("--data", "samples to run with are missing");
    const InterruptScope interrupt;
    ProgressLine line;
    line.show("reading");
    const Model model = load_model(arguments.model, arguments.load);
    const std::vector<Port> inputs = Program(clone(model)).inputs();
    const int64_t batch = arguments.samples.batch > 0 ? arguments.samples.batch : default_batch(inputs);
    auto loader = std::make_shared<Loader>(arguments.samples.open(
        arguments.samples.sources, inputs, {.batch_size = batch, .limit = arguments.samples.samples}));
    TuneOptions options;
    options.quantize = arguments.choices.options();
    options.samples = {arguments.samples.samples};
    options.scoring_samples = arguments.scoring_samples;
    options.progress.working = [&](const std::string& what, int64_t done, int64_t of) {
        InterruptScope::check();
        line.show(of > 0 ? fmt::format("{}: {} of {}", what, done, of) : what);
    };
    const std::vector<Sensitivity> rows =
        about(arguments.model, [&] { return sensitivity(model, batches_of(loader), options); });
    line.clear();
    if (arguments.json)
        fmt::print("{}\n", sensitivity_json(rows));
    else
        fmt::print(
            "{}\nerror   of the outputs that goes away when the operator alone returns to FP32, and its share of the whole\n"
            "gain    share of the FP32 time that INT8 saves\n",
            sensitivity_text(rows));
}

}  // namespace

void add_sensitivity(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command =
        app.add_subcommand("sensitivity", "Rank operators by what quantizing them costs and gains");
    command->add_option("MODEL", arguments->model, kModelFile)->required()->type_name("");
    add_load_options(*command, arguments->load);
    add_sample_options(*command, arguments->samples, "Calibrate with the first N samples (default 100)");
    command
        ->add_option("--scoring-samples", arguments->scoring_samples,
                     "Rank with the first N of them (default 32)")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 20).description(""));
    add_choice_options(*command, arguments->choices);
    command->add_flag("--json", arguments->json, "Print the table as JSON");
    command->footer("Example:\n  kilter sensitivity model.onnx --data photos/ --scale 1/255");
    command->callback([arguments] { run(*arguments); });
}

}  // namespace kilter::cli
