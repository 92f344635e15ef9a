// Accuracy: the share of right answers. Multiclass: the largest of several scores against the class. Binary: one number per
// sample. Multilabel: several numbers per sample, output and label alike; each counts, or with `exact_match` only all together.
#include "base/fail.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

class Accuracy final : public MeanMetric {
  public:
    explicit Accuracy(const Settings& settings)
        : output_(output_index(settings)),
          threshold_(settings.get("threshold", 0.5)),
          exact_match_(settings.get("exact_match", false)) {
        settings.allow_keys({"output", "threshold", "exact_match"});
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const size_t first = scores_.size();
        const Rows rows(outputs, output_, labels.size(), first);
        if (rows.size() == 0) return;
        const bool multilabel = rows.width() > 1 && label_entry(labels[0], "label", first).size() > 1;
        const std::vector<int64_t> classes =
            multilabel ? std::vector<int64_t>() : predicted_classes(rows, threshold_, first);
        std::vector<double> scores;
        for (size_t i = 0; i < rows.size(); ++i) {
            if (multilabel)
                scores.push_back(compare(rows, i, labels[i], first + i));
            else
                scores.push_back(classes[i] ==
                                 label_class(labels[i], first + i, rows.width() > 1 ? rows.width() : 0));
        }
        scores_.insert(scores_.end(), scores.begin(), scores.end());
    }

    std::pair<double, double> bounds() const override { return {0, 1}; }

  private:
    double compare(const Rows& rows, size_t row, const Label& label, size_t sample) const {
        const std::vector<double> truth = label_numbers(label, "label", sample);
        require(truth.size() == rows.width(), "'label' of sample {} has {} numbers, the output has {}",
                sample, truth.size(), rows.width());
        size_t right = 0;
        for (size_t i = 0; i < truth.size(); ++i) {
            const double said = is_float(rows.dtype()) ? (rows[row][i] >= threshold_ ? 1 : 0) : rows[row][i];
            right += said == truth[i];
        }
        if (exact_match_) return right == truth.size() ? 1 : 0;
        return static_cast<double>(right) / static_cast<double>(truth.size());
    }

    int64_t output_;
    double threshold_;
    bool exact_match_;
};

}  // namespace

Made make_accuracy(const Settings& settings) { return std::make_unique<Accuracy>(settings); }

}  // namespace kilter::metrics
