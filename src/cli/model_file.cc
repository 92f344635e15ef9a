#include "cli/model_file.h"

#include "base/fail.h"
#include "cli/shapes.h"
#include "kilter/deploy/mxnet.h"

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
    command
        .add_option_function<std::vector<std::string>>(
            "--input-shape",
            [&options](const std::vector<std::string>& entries) {
                for (const std::string& entry : entries)
                    options.shapes.push_back(parse_shape("--input-shape", entry, -1));
            },
            "MXNet: shape of an input, -1 for what is open; may be repeated")
        ->type_name("NAME=DIMS")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

LoadOptions for_file(const std::string& path, const LoadOptions& options) {
    const ModelFormat format = format_of(path);
    LoadOptions fitting;
    if (format == ModelFormat::mxnet) fitting.shapes = options.shapes;
    if (format != ModelFormat::mxnet && format != ModelFormat::onnx) {
        fitting = options;
        fitting.shapes.clear();
    }
    return fitting;
}

void save_as(const QuantizedModel& model, const std::string& source, const std::string& output) {
    constexpr std::string_view kSymbol = "-symbol.json";
    if (!output.ends_with(kSymbol)) return save(model, output);
    require(format_of(source) == ModelFormat::mxnet, "{}: only models of MXNet can be written for it",
            output);
    mxnet::export_model(model, source, output.substr(0, output.size() - kSymbol.size()));
}

}  // namespace kilter::cli
