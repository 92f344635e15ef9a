// kilter recover: builds a trial of a study again.
#include <fmt/format.h>

#include "cli/command.h"
#include "kilter/tuning/tune.h"

namespace kilter::cli {

void add_recover(CLI::App& app) {
    struct Arguments {
        std::string workspace, output;
        int number = 0;
    };
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("recover", "Rebuild a trial of an earlier kilter tune");
    command->add_option("WORKSPACE", arguments->workspace, "Folder of the study")->required()->type_name("");
    command->add_option("TRIAL", arguments->number, "Number of the trial (default: the best one)")
        ->type_name("")
        ->check(CLI::Range(1, 1 << 30).description(""));
    command->add_option("-o,--output", arguments->output, "ONNX file to write")->required()->type_name("OUT");
    command->footer("Example:\n  kilter recover kilter_workspace/resnet50 3 -o trial3.onnx");
    command->callback([arguments] {
        const QuantizedModel model = recover(arguments->workspace, arguments->number);
        save(model, arguments->output);
        fmt::print("operators   int8 {}, bf16 {}, f32 {}\nwritten     {}\n",
                   model.plan.count(Precision::int8), model.plan.count(Precision::bf16),
                   model.plan.count(Precision::f32), arguments->output);
    });
}

}  // namespace kilter::cli
