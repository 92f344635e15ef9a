// kilter run: one run of a model on arrays from files.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "base/convert.h"
#include "base/fail.h"
#include "base/npy.h"
#include "cli/command.h"
#include "cli/model_file.h"
#include "cli/shapes.h"
#include "kilter/engine/program.h"
#include "kilter/formats/load.h"
#include "report/text.h"

namespace kilter::cli {
namespace {

struct Arguments {
    std::string model;
    LoadOptions load;
    std::vector<std::string> inputs;
    std::string output;
    int threads = 0;
};

// Inputs in the model's order; with a single input its name may be left out.
std::vector<Tensor> load_inputs(const std::vector<Port>& ports, const std::vector<std::string>& texts) {
    std::vector<Tensor> tensors(ports.size());
    for (const std::string& text : texts) {
        const bool bare = ports.size() == 1 && text.find('=') == std::string::npos;
        const auto [name, file] = bare ? std::pair(ports[0].name, text) : split_assignment("--input", text);
        const auto port = std::ranges::find(ports, name, &Port::name);
        if (port == ports.end()) {
            std::vector<std::string> names;
            for (const Port& known : ports) names.push_back(known.name);
            throw Error(fmt::format("the model has no input '{}'", name),
                        fmt::format("its inputs are {}", fmt::join(names, ", ")));
        }
        tensors[static_cast<size_t>(port - ports.begin())] = read_npy(file);
    }
    for (size_t i = 0; i < ports.size(); ++i)
        if (tensors[i].empty())
            throw Error(fmt::format("input '{}' is missing", ports[i].name),
                        fmt::format("add --input {}=FILE.npy with an array of {}", ports[i].name,
                                    to_string(ports[i].type)));
    return tensors;
}

// Names of tensors may hold anything; names of files may not.
std::string file_name(const std::string& name, std::set<std::string>& taken) {
    std::string stem = name.empty() ? "output" : name;
    for (char& c : stem)
        if (c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 0x20) c = '_';
    if (stem[0] == '.') stem[0] = '_';
    std::string candidate = stem;
    for (int i = 1; !taken.insert(candidate).second; ++i) candidate = fmt::format("{}_{}", stem, i);
    return candidate + ".npy";
}

std::vector<std::string> describe_output(const std::string& name, const Tensor& tensor) {
    std::vector<std::string> row{
        name, fmt::format("{}[{}]", kilter::name(tensor.dtype()), fmt::join(tensor.shape(), ", "))};
    if (tensor.size() == 0 || tensor.dtype() == DType::string || tensor.dtype() == DType::complex64 ||
        tensor.dtype() == DType::complex128)
        return row;
    double low = load_double(tensor.dtype(), tensor.raw(), 0);
    double high = low;
    double sum = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
        const double value = load_double(tensor.dtype(), tensor.raw(), i);
        low = std::min(low, value);
        high = std::max(high, value);
        sum += value;
    }
    for (const double value : {low, sum / static_cast<double>(tensor.size()), high})
        row.push_back(fmt::format("{:.6g}", value));
    return row;
}

void run(const Arguments& arguments) {
    Model model = load_model(arguments.model, arguments.load);
    const auto program = about(arguments.model, [&] {
        return std::make_unique<Program>(std::move(model), EngineOptions{.threads = arguments.threads});
    });
    const std::vector<Port>& ports = program->outputs();
    const std::vector<Tensor> inputs = load_inputs(program->inputs(), arguments.inputs);
    const std::vector<Tensor> outputs = about(arguments.model, [&] { return program->run(inputs); });

    std::vector<std::vector<std::string>> rows{{"output", "type", "min", "mean", "max"}};
    for (size_t i = 0; i < outputs.size(); ++i) rows.push_back(describe_output(ports[i].name, outputs[i]));
    if (!arguments.output.empty()) {
        std::error_code error;
        std::filesystem::create_directories(arguments.output, error);
        require(!error, "{}: cannot make the directory: {}", arguments.output, error.message());
        std::set<std::string> taken;
        rows[0].emplace_back("file");
        for (size_t i = 0; i < outputs.size(); ++i) {
            const std::filesystem::path path =
                std::filesystem::path(arguments.output) / file_name(ports[i].name, taken);
            write_npy(outputs[i], path);
            rows[i + 1].resize(5);
            rows[i + 1].push_back(path.string());
        }
    }
    fmt::print("{}", table(rows, {2, 3, 4}, ""));
}

}  // namespace

void add_run(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("run", "Run a model once on .npy files and write its outputs");
    command->add_option("MODEL", arguments->model, kModelFile)->required()->type_name("");
    add_load_options(*command, arguments->load);
    command
        ->add_option("-i,--input", arguments->inputs,
                     "Array for an input; the name may be left out when there is one")
        ->type_name("NAME=FILE.npy")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command->add_option("-o,--output", arguments->output, "Write every output to DIR/<name>.npy")
        ->type_name("DIR");
    command->add_option("--threads", arguments->threads, "Threads of the run (default: all cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096).description(""));
    command->footer(
        "Example:\n  kilter run model.onnx --input image=images.npy -o outputs/\n\n"
        "Prints type, smallest, mean and largest element of every output.");
    command->callback([arguments] { run(*arguments); });
}

}  // namespace kilter::cli
