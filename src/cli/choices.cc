#include "cli/choices.h"

#include <algorithm>

#include <fmt/format.h>

namespace kilter::cli {
namespace {

// "/conv[0-9]+/" is a regular expression, too.
std::string pattern(const std::string& text) {
    const bool slashes = text.size() > 2 && text.front() == '/' && text.back() == '/';
    return slashes ? "re:" + text.substr(1, text.size() - 2) : text;
}

Choice model_choice(const ChoiceArguments& arguments) {
    Choice choice;
    const size_t colon = arguments.calibration.find(':');
    // "auto" leaves the choice to the default plan: percentile for convolutions, minmax for everything else.
    if (arguments.calibration != "auto")
        choice.algorithm = range_algorithm(arguments.calibration.substr(0, colon));
    if (colon != std::string::npos) {
        double percentile = 0;
        const bool number = CLI::detail::lexical_cast(arguments.calibration.substr(colon + 1), percentile);
        if (choice.algorithm != RangeAlgorithm::percentile || !number || percentile <= 50 || percentile > 100)
            throw CLI::ValidationError(
                "--calibration",
                fmt::format("expected e.g. percentile:99.9, found '{}'", arguments.calibration));
        choice.percentile = percentile;
    }
    choice.granularity = granularity(arguments.weights);
    // MXNet knows no zero points: its plan says so itself.
    if (arguments.target != "mxnet" || arguments.scheme != "asym") choice.scheme = scheme(arguments.scheme);
    return choice;
}

}  // namespace

QuantizeOptions ChoiceArguments::options() const {
    QuantizeOptions options;
    options.mode = kilter::mode(mode);
    options.target = kilter::target(target);
    options.overrides.push_back({Override::Of::model, "", model_choice(*this)});
    std::ranges::transform(exclude, std::back_inserter(options.exclude), pattern);
    std::ranges::transform(only, std::back_inserter(options.only), pattern);
    for (const std::string& recipe : recipes) enable(options.recipes, recipe);
    return options;
}

void ChoiceArguments::apply(QuantizeOptions& options, const CLI::App& command) const {
    const auto given = [&](const char* option) { return command.count(option) > 0; };
    const QuantizeOptions own = this->options();
    Choice choice = own.overrides.front().choice;
    if (!given("--calibration")) choice.algorithm.reset();
    if (!given("--weights")) choice.granularity.reset();
    if (!given("--scheme")) choice.scheme.reset();
    if (choice.algorithm || choice.granularity || choice.scheme)
        options.overrides.push_back({Override::Of::model, "", choice});
    if (given("--mode")) options.mode = own.mode;
    if (given("--target")) options.target = own.target;
    options.exclude.insert(options.exclude.end(), own.exclude.begin(), own.exclude.end());
    if (given("--only")) options.only = own.only;
    for (const std::string& recipe : recipes) enable(options.recipes, recipe);
}

void add_choice_options(CLI::App& command, ChoiceArguments& arguments) {
    command
        .add_option("--calibration", arguments.calibration,
                    "auto (default), minmax (naive), kl (entropy), percentile[:P] or mse")
        ->type_name("HOW");
    const auto words = [&](const char* option, std::string& value, std::vector<std::string> known,
                           const char* help) {
        command.add_option(option, value, help)
            ->type_name("W")
            ->check(CLI::IsMember(std::move(known)).description(""));
    };
    const auto several = [&](const char* option, std::vector<std::string>& values, const char* type,
                             const char* help) {
        command.add_option(option, values, help)
            ->type_name(type)
            ->expected(1)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    words("--weights", arguments.weights, {"per-channel", "per-tensor", "channel-wise", "tensor-wise"},
          "per-channel (default) or per-tensor");
    words("--scheme", arguments.scheme, {"sym", "asym"}, "asym (default) or sym: zero points of activations");
    words("--mode", arguments.mode, {"full", "smart"},
          "smart (default), or full: all that has integer kernels");
    words("--target", arguments.target, {"kilter", "onnxruntime", "mxnet"},
          "kilter (default), onnxruntime or mxnet: whom to please");
    several("--exclude", arguments.exclude, "NAME", "Keep these in float: name, glob, /regex/ or type:Conv");
    several("--only", arguments.only, "NAME", "Quantize nothing else");
    several("--recipe", arguments.recipes, "R",
            "equalization, smooth-quant, float-first, float-last, no-bias-correction, …");
}

}  // namespace kilter::cli
