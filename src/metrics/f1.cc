// F1: the harmonic mean of precision and recall; of one class (binary), or over classes (macro, micro, weighted). Labels with
// several numbers are multilabel. A class that was neither said nor true counts as 0, as in scikit-learn.
#include <fmt/format.h>

#include "base/fail.h"
#include "metrics/counts.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

class F1 final : public Metric {
  public:
    explicit F1(const Settings& settings)
        : output_(output_index(settings)),
          threshold_(settings.get("threshold", 0.5)),
          average_(one_of(settings, "average", {"binary", "macro", "micro", "weighted"})),
          positive_(settings.get("pos_label", 1)) {
        settings.allow_keys({"output", "threshold", "average", "pos_label"});
    }

    void reset() override {
        counts_.clear();
        samples_ = 0;
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const Rows rows(outputs, output_, labels.size(), samples_);
        if (rows.size() == 0) return;
        Counts counts = counts_;
        if (rows.width() > 1 && label_entry(labels[0], "label", samples_).size() > 1)
            count_labels(counts, rows, labels);
        else
            count_classes(counts, rows, labels);
        counts_ = std::move(counts);
        samples_ += labels.size();
    }

    double result() const override {
        require_samples(samples_);
        if (average_ != "binary") return counts_.f1(average_);
        for (const auto& [id, counts] : counts_.classes())
            if (id != 0 && id != 1 && counts_.classes().size() > 2)
                throw Error(
                    fmt::format("F1 of one class, but there are {} classes", counts_.classes().size()),
                    "set 'average' to macro, micro or weighted");
        const auto found = counts_.classes().find(positive_);
        return found == counts_.classes().end() ? 0 : found->second.f1();
    }

  private:
    void count_classes(Counts& counts, const Rows& rows, std::span<const Label> labels) const {
        const std::vector<int64_t> said = predicted_classes(rows, threshold_, samples_);
        for (size_t i = 0; i < rows.size(); ++i)
            counts.add(said[i], label_class(labels[i], samples_ + i, rows.width() > 1 ? rows.width() : 0));
    }

    void count_labels(Counts& counts, const Rows& rows, std::span<const Label> labels) const {
        if (average_ == "binary")
            throw Error("F1 of one class, but samples have several labels",
                        "set 'average' to macro, micro or weighted");
        for (size_t i = 0; i < rows.size(); ++i) {
            const std::vector<double> truth = label_numbers(labels[i], "label", samples_ + i);
            require(truth.size() == rows.width(), "'label' of sample {} has {} numbers, the output has {}",
                    samples_ + i, truth.size(), rows.width());
            for (size_t j = 0; j < truth.size(); ++j)
                counts.add_label(static_cast<int64_t>(j), rows[i][j] >= threshold_, truth[j] != 0);
        }
    }

    int64_t output_;
    double threshold_;
    std::string average_;
    int64_t positive_;
    Counts counts_;
    size_t samples_ = 0;
};

}  // namespace

Made make_f1(const Settings& settings) { return std::make_unique<F1>(settings); }

}  // namespace kilter::metrics
