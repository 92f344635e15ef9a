// MSE, MAE and RMSE: how far the numbers of an output are from those of the label, or with `compare_label: false` from what
// the FP32 model answered. A sample counts as the mean over its numbers, the result is the mean over samples.
#include <cmath>

#include "base/fail.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

enum class Kind { mse, mae, rmse };

class Differences final : public MeanMetric {
  public:
    Differences(Kind kind, const Settings& settings)
        : kind_(kind), output_(output_index(settings)), compare_label_(settings.get("compare_label", true)) {
        settings.allow_keys({"output", "compare_label"});
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const size_t first = scores_.size();
        const Rows rows(outputs, output_, labels.size(), first);
        const std::string entry = compare_label_ ? "label" : reference_entry(output_);
        std::vector<double> scores;
        for (size_t i = 0; i < rows.size(); ++i) {
            const std::vector<double> truth = label_numbers(labels[i], entry, first + i);
            require(truth.size() == rows.width(), "'{}' of sample {} has {} numbers, the output has {}",
                    entry, first + i, truth.size(), rows.width());
            require(!truth.empty(), "sample {} has no numbers to compare", first + i);
            double sum = 0;
            for (size_t j = 0; j < truth.size(); ++j) {
                const double difference = rows[i][j] - truth[j];
                sum += kind_ == Kind::mae ? std::abs(difference) : difference * difference;
            }
            scores.push_back(sum / static_cast<double>(truth.size()));
        }
        scores_.insert(scores_.end(), scores.begin(), scores.end());
    }

    double result() const override {
        return kind_ == Kind::rmse ? std::sqrt(MeanMetric::result()) : MeanMetric::result();
    }
    bool higher_is_better() const override { return false; }
    std::vector<double> per_sample() const override {
        return kind_ == Kind::rmse ? std::vector<double>() : scores_;
    }
    std::pair<double, double> bounds() const override { return {0, Metric::bounds().second}; }
    bool needs_reference() const override { return !compare_label_; }

  private:
    Kind kind_;
    int64_t output_;
    bool compare_label_;
};

}  // namespace

Made make_mse(const Settings& settings) { return std::make_unique<Differences>(Kind::mse, settings); }
Made make_mae(const Settings& settings) { return std::make_unique<Differences>(Kind::mae, settings); }
Made make_rmse(const Settings& settings) { return std::make_unique<Differences>(Kind::rmse, settings); }

}  // namespace kilter::metrics
