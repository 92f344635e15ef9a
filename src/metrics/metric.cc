#include "kilter/metrics/metric.h"

#include <limits>

#include <fmt/format.h>

#include "base/spelling.h"
#include "kilter/base/error.h"
#include "metrics/metrics.h"

namespace kilter {
namespace {

struct Entry {
    std::string_view name;
    metrics::Made (*make)(const Settings&);
};

constexpr Entry kMetrics[] = {
    {"topk", metrics::make_topk},
    {"Accuracy", metrics::make_accuracy},
    {"F1", metrics::make_f1},
    {"bag_f1", metrics::make_bag_f1},
    {"ROC", metrics::make_roc},
    {"GLUE", metrics::make_glue},
    {"MSE", metrics::make_mse},
    {"MAE", metrics::make_mae},
    {"RMSE", metrics::make_rmse},
    {"Loss", metrics::make_loss},
    {"mAP", metrics::make_map},
    {"COCOmAP", metrics::make_coco_map},
    {"COCOmAPv2", metrics::make_coco_map},
    {"VOCmAP", metrics::make_voc_map},
    {"mIOU", metrics::make_miou},
    {"SquadF1", metrics::make_squad},
    {"BLEU", metrics::make_bleu},
};

}  // namespace

std::string reference_entry(int64_t output) {
    return output == 0 ? "reference" : fmt::format("reference:{}", output);
}

std::pair<double, double> Metric::bounds() const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {-kInfinity, kInfinity};
}

std::unique_ptr<Metric> make_metric(const Component& component) {
    for (const Entry& entry : kMetrics)
        if (entry.name == component.name) return entry.make(component.settings);
    fail_unknown("metric", component.name, metric_names(), component.settings.where());
}

std::vector<std::string> metric_names() {
    std::vector<std::string> names;
    for (const Entry& entry : kMetrics) names.emplace_back(entry.name);
    return names;
}

}  // namespace kilter
