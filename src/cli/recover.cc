// kilter recover: builds a trial of a study again.
#include <fmt/format.h>

#include "base/output_file.h"
#include "cli/command.h"
#include "kilter/base/error.h"
#include "kilter/tuning/tune.h"

namespace kilter::cli {

void add_recover(CLI::App& app) {
    struct Arguments {
        std::string workspace, output;
        std::string save_plan;
        int number = 0;
    };
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("recover", "Rebuild a trial of an earlier kilter tune");
    command->add_option("WORKSPACE", arguments->workspace, "Folder of the study")->required()->type_name("");
    command->add_option("TRIAL", arguments->number, "Number of the trial (default: the best one)")
        ->type_name("")
        ->check(CLI::Range(1, 1 << 30).description(""));
    command->add_option("-o,--output", arguments->output, "ONNX file to write")->required()->type_name("OUT");
    command
        ->add_option("--save-plan", arguments->save_plan,
                     "Write its plan as JSON, for `kilter quantize --plan` and other formats")
        ->type_name("FILE");
    command->footer("Example:\n  kilter recover kilter_workspace/resnet50 3 -o trial3.onnx");
    command->callback([arguments] {
        const std::string& output = arguments->output;
        if (output.ends_with(".pb") || output.ends_with(".pbtxt") || output.ends_with("-symbol.json"))
            throw Error(
                fmt::format("{}: trials are written as ONNX files", output),
                "write the plan with --save-plan and give it to `kilter quantize --plan`, with samples");
        const QuantizedModel model = recover(arguments->workspace, arguments->number);
        save(model, output);
        if (!arguments->save_plan.empty()) {
            OutputFile file(arguments->save_plan);
            file.write(model.plan.json());
            file.commit();
        }
        fmt::print("operators   int8 {}, bf16 {}, f32 {}\nwritten     {}\n",
                   model.plan.count(Precision::int8), model.plan.count(Precision::bf16),
                   model.plan.count(Precision::f32), arguments->output);
    });
}

}  // namespace kilter::cli
