#include "cli/evaluation.h"

#include <charconv>

#include <fmt/format.h>

namespace kilter::cli {
namespace {

Settings value_of(const std::string& text) {
    if (text == "true" || text == "false") return text == "true";
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) {
        if (number == static_cast<double>(static_cast<int64_t>(number))) return static_cast<int64_t>(number);
        return number;
    }
    return text;
}

std::vector<Component> components(const std::vector<std::string>& texts) {
    std::vector<Component> parsed;
    for (const std::string& text : texts) parsed.push_back(parse_metric(text));
    if (parsed.empty()) parsed.push_back({"topk", {}});
    return parsed;
}

std::vector<std::unique_ptr<Metric>> made(const std::vector<Component>& metrics) {
    std::vector<std::unique_ptr<Metric>> list;
    for (const Component& metric : metrics) list.push_back(make_metric(metric));
    return list;
}

std::function<BatchSource()> open_shuffled(const EvaluationArguments& arguments,
                                           const std::vector<Port>& inputs, uint64_t seed) {
    const SampleArguments& samples = arguments.samples;
    if (samples.sources.empty()) throw CLI::ValidationError("--data", "samples to evaluate with are missing");
    return batches_of(std::make_shared<Loader>(samples.open(
        samples.sources, inputs,
        {.batch_size = arguments.batch(inputs), .shuffle = true, .seed = seed, .limit = samples.samples})));
}

}  // namespace

Component parse_metric(const std::string& text) {
    const size_t colon = text.find(':');
    Component component{text.substr(0, colon), {}};
    if (colon == std::string::npos) return component;
    std::string rest = text.substr(colon + 1);
    if (rest.find('=') == std::string::npos) {
        if (component.name == "topk")
            component.settings.set("k", value_of(rest));
        else
            component.settings = value_of(rest);
        return component;
    }
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        const std::string part = rest.substr(0, comma);
        const size_t equals = part.find('=');
        if (equals == std::string::npos)
            throw CLI::ValidationError("--metric", fmt::format("expected KEY=VALUE, found '{}'", part));
        component.settings.set(part.substr(0, equals), value_of(part.substr(equals + 1)));
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    return component;
}

int64_t EvaluationArguments::batch(const std::vector<Port>& inputs) const {
    return samples.batch > 0 ? samples.batch : default_batch(inputs);
}

std::unique_ptr<Evaluation> EvaluationArguments::make(const std::vector<Port>& inputs, uint64_t seed,
                                                      std::function<void(int64_t samples)> progress) const {
    const std::vector<Component> asked = components(metrics);
    return evaluate_with(open_shuffled(*this, inputs, seed), made(asked),
                         {.instances = instances, .metrics = asked, .progress = std::move(progress)});
}

std::unique_ptr<Evaluation> EvaluationArguments::make(const Config& config, const std::vector<Port>& inputs,
                                                      uint64_t seed,
                                                      std::function<void(int64_t samples)> progress) const {
    const bool own = !samples.sources.empty();
    if (!own && (!samples.labels.empty() || samples.samples > 0 || samples.batch > 0))
        throw CLI::ValidationError(
            "--labels, --samples, --batch",
            "these are about --data; a configuration says itself how its samples are read");
    const int64_t wanted = config.accuracy.configs.instances;
    const std::vector<Component> asked = metrics.empty() ? asked_metrics(config) : components(metrics);
    return evaluate_with(own ? open_shuffled(*this, inputs, seed)
                             : batches_of(evaluation_loader(config, inputs), config.accuracy.iteration),
                         metrics.empty() ? make_metrics(config) : made(asked),
                         {.instances = instances > 0 || wanted <= 1 ? instances : static_cast<int>(wanted),
                          .metrics = asked,
                          .progress = std::move(progress)});
}

void add_evaluation_options(CLI::App& command, EvaluationArguments& arguments,
                            const std::string& samples_help) {
    arguments.samples.batch = 0;
    add_sample_options(command, arguments.samples, samples_help);
    command.get_option("--batch")->description("Samples of one run (default: the input's, or 8)");
    add_labels_option(command, arguments.samples);
    command
        .add_option("--metric", arguments.metrics,
                    "topk (default), topk:5, Accuracy, F1, mAP, …; may be repeated")
        ->type_name("NAME")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command
        .add_option("--instances", arguments.instances, "Evaluations side by side (default: one per core)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024).description(""));
}

}  // namespace kilter::cli
