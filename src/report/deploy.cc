#include "report/deploy.h"

#include <cmath>

#include <fmt/format.h>

#include "base/output_file.h"

namespace kilter {
namespace {

// Text as YAML that no parser takes for anything else; JSON's quotes are YAML's.
std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            result += fmt::format("\\{}", c);
        else if (static_cast<unsigned char>(c) < 0x20)
            result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
            result += c;
    }
    return result + "\"";
}

// In flow style: one line, so that no indentation can go wrong.
std::string flow(const Settings& settings) {
    if (settings.is_null()) return "{}";
    if (settings.is_bool()) return settings.as_bool() ? "true" : "false";
    if (settings.is_number()) {
        const double value = settings.as_number();
        return value == std::trunc(value) && std::abs(value) < 1e15
                   ? fmt::format("{}", static_cast<int64_t>(value))
                   : fmt::format("{}", value);
    }
    if (settings.is_text()) return quoted(settings.as_text());
    std::string text;
    if (settings.is_list()) {
        for (const Settings& entry : settings.as_list()) text += (text.empty() ? "" : ", ") + flow(entry);
        return "[" + text + "]";
    }
    for (const auto& [name, value] : settings.as_map())
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", quoted(name), flow(value));
    return "{" + text + "}";
}

std::string flow(const std::vector<Component>& components) {
    std::string text;
    for (const Component& component : components)
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", quoted(component.name),
                            flow(component.settings));
    return "{" + text + "}";
}

std::string metric_line(const AccuracyConfig& accuracy) {
    if (accuracy.metrics.empty()) return "";
    if (accuracy.metrics.size() == 1)
        return fmt::format("    metric: {}\n", flow(std::vector{accuracy.metrics[0].component}));
    std::vector<Component> components;
    Settings::List weights, directions;
    for (const MetricConfig& metric : accuracy.metrics) {
        components.push_back(metric.component);
        weights.emplace_back(metric.weight);
        if (metric.higher_is_better) directions.emplace_back(*metric.higher_is_better);
    }
    if (accuracy.weighted) components.push_back({"weight", weights});
    if (directions.size() == accuracy.metrics.size()) components.push_back({"higher_is_better", directions});
    return fmt::format("    multi_metrics: {}\n", flow(components));
}

std::string loader_lines(const LoaderConfig& loader, const std::string& indent) {
    std::string text = indent + "dataloader:\n";
    if (loader.batch_size) text += fmt::format("{}  batch_size: {}\n", indent, *loader.batch_size);
    if (loader.last_batch == LastBatch::discard) text += indent + "  last_batch: discard\n";
    text += fmt::format("{}  dataset: {}\n", indent, flow(std::vector{loader.dataset}));
    if (!loader.transforms.empty())
        text += fmt::format("{}  transform: {}\n", indent, flow(loader.transforms));
    return text;
}

}  // namespace

void write_deploy_yaml(const std::filesystem::path& path, const std::filesystem::path& model,
                       const Config* config, const TuneResult& result) {
    std::string text = fmt::format(
        "# Written by kilter tune: accuracy {:.4f} (FP32 {:.4f}), the promise is {}kept.\n",
        result.best.outcome.accuracy.at(0), result.baseline.accuracy.at(0), result.met ? "" : "not ");
    text += fmt::format(
        "model:\n  name: {}\n  framework: onnxrt_qdq\n  path: {}\n",
        quoted(config != nullptr && !config->model.name.empty() ? config->model.name : model.stem().string()),
        quoted(std::filesystem::absolute(model).string()));
    if (config != nullptr && (config->accuracy.dataloader || !config->accuracy.metrics.empty())) {
        text += "evaluation:\n  accuracy:\n";
        text += metric_line(config->accuracy);
        if (config->accuracy.iteration >= 0)
            text += fmt::format("    iteration: {}\n", config->accuracy.iteration);
        if (config->accuracy.dataloader) text += loader_lines(*config->accuracy.dataloader, "    ");
        if (!config->accuracy.postprocess.empty())
            text +=
                fmt::format("    postprocess:\n      transform: {}\n", flow(config->accuracy.postprocess));
        if (config->performance.dataloader)
            text += "  performance:\n" + loader_lines(*config->performance.dataloader, "    ");
        // The order of the samples, which decides which ones a number of iterations sees.
        text += fmt::format("tuning:\n  random_seed: {}\n", config->tuning.random_seed);
    }
    OutputFile file(path);
    file.write(text);
    file.commit();
}

}  // namespace kilter
