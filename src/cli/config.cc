// kilter config: checks a configuration and says what it means; prints the JSON Schema of configurations.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/spelling.h"
#include "cli/command.h"
#include "kilter/config/config.h"
#include "kilter/data/dataset.h"
#include "kilter/data/transforms.h"
#include "kilter/metrics/metric.h"
#include "kilter/tuning/strategy.h"

namespace kilter::cli {
namespace {

struct Arguments {
    std::string file;
    bool schema = false;
};

// The files of a dataset need not be here, so only its name is looked at.
void check_dataset(const Component& dataset) {
    const std::vector<std::string> names = dataset_names();
    if (std::ranges::find(names, dataset.name) != names.end()) return;
    fail_unknown("dataset", dataset.name, names, dataset.settings.where());
}

void check_transforms(const std::vector<Component>& transforms, const std::string& framework) {
    for (const Component& transform : transforms) {
        try {
            make_transform(transform, framework);
        } catch (const Error& error) {
            const std::string& where = transform.settings.where();
            throw where.empty() || std::string_view(error.what()).starts_with(where) ? error
                                                                                     : error.in(where);
        }
    }
}

// Names of datasets, transforms, metrics and strategies are only known where these are made.
void check_names(const Config& config) {
    for (const auto* loader : {&config.quantization.calibration.dataloader, &config.accuracy.dataloader,
                               &config.performance.dataloader}) {
        if (!*loader) continue;
        check_dataset((*loader)->dataset);
        check_transforms((*loader)->transforms, config.model.framework);
    }
    check_transforms(config.accuracy.postprocess, config.model.framework);
    for (const MetricConfig& metric : config.accuracy.metrics) make_metric(metric.component);
    const StrategyConfig& strategy = config.tuning.strategy;
    about(strategy.where, [&] { make_strategy(strategy.name, strategy.options); });
}

void run(const Arguments& arguments) {
    if (arguments.schema) {
        fmt::print("{}", config_schema());
        return;
    }
    if (arguments.file.empty()) throw CLI::RequiredError("FILE");  // only --schema does without
    const Config config = read_config(arguments.file);
    about(arguments.file, [&] { check_names(config); });
    fmt::print("{}", describe(config));
}

}  // namespace

void add_config(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("config", "Check a configuration file and say what it means");
    command->add_option("FILE", arguments->file, "YAML file, as LPOT and Intel Neural Compressor 1.x take it")
        ->type_name("");
    command->add_flag("--schema", arguments->schema, "Print the JSON Schema of configurations and exit");
    command->footer("Examples:\n  kilter config conf.yaml\n  kilter config --schema > config.schema.json");
    command->callback([arguments] { run(*arguments); });
}

}  // namespace kilter::cli
