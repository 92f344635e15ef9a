// ROC: the area under the ROC curve, which is the chance that a positive sample scores higher than a negative one.
// The old tool returned the accuracy at a threshold under this name.
#include "base/fail.h"
#include "metrics/metrics.h"
#include "metrics/ranks.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

class Roc final : public Metric {
  public:
    explicit Roc(const Settings& settings) : output_(output_index(settings)) {
        settings.allow_keys({"output", "task"});
    }

    void reset() override {
        scores_.clear();
        positive_.clear();
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const Rows rows(outputs, output_, labels.size(), scores_.size());
        require(rows.size() == 0 || (rows.is_vector() && (rows.width() == 1 || rows.width() == 2)),
                "ROC: output {} has the shape {}, expected one score for each sample, or two", output_,
                to_string(rows.shape()));
        std::vector<double> scores;
        std::vector<bool> positive;
        for (size_t i = 0; i < rows.size(); ++i) {
            const int64_t truth = label_class(labels[i], scores_.size() + i, 2);
            // Logits and probabilities of two classes order samples alike by their difference.
            scores.push_back(rows.width() == 1 ? rows[i][0] : rows[i][1] - rows[i][0]);
            positive.push_back(truth == 1);
        }
        scores_.insert(scores_.end(), scores.begin(), scores.end());
        positive_.insert(positive_.end(), positive.begin(), positive.end());
    }

    double result() const override {
        require_samples(scores_.size());
        const std::vector<double> places = ranks(scores_);
        double sum = 0, positives = 0;
        for (size_t i = 0; i < places.size(); ++i)
            if (positive_[i]) {
                sum += places[i];
                ++positives;
            }
        const double negatives = static_cast<double>(places.size()) - positives;
        require(positives > 0 && negatives > 0, "ROC needs samples of both classes, all {} are {}",
                places.size(), positives > 0 ? "positive" : "negative");
        return (sum - positives * (positives + 1) / 2) / (positives * negatives);
    }

  private:
    int64_t output_;
    std::vector<double> scores_;
    std::vector<bool> positive_;
};

}  // namespace

Made make_roc(const Settings& settings) { return std::make_unique<Roc>(settings); }

}  // namespace kilter::metrics
