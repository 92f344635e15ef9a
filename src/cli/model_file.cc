#include "cli/model_file.h"

namespace kilter::cli {

void add_load_options(CLI::App& command, LoadOptions& options) {
    const auto add_names = [&](const char* flag, std::vector<std::string>& names, const char* text) {
        command.add_option(flag, names, text)
            ->type_name("NAMES")
            ->delimiter(',')
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    add_names("--inputs", options.inputs,
              "TensorFlow: tensors to feed, e.g. a,b:1 (default: the placeholders)");
    add_names("--outputs", options.outputs, "TensorFlow: tensors to fetch (default: what no node reads)");
    command
        .add_option("--signature", options.signature,
                    "SavedModel: signature to use (default: serving_default)")
        ->type_name("NAME");
}

LoadOptions for_file(const std::string& path, const LoadOptions& options) {
    return format_of(path) == ModelFormat::onnx ? LoadOptions{} : options;
}

}  // namespace kilter::cli
