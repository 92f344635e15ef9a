// GLUE: the figure of each task of that benchmark: Matthews' correlation for CoLA, the mean of Pearson's and Spearman's for
// STS-B, accuracy for the others; MRPC gives F1, as the old tool did, unless `score` asks for accuracy or the mean of both.
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/fail.h"
#include "metrics/counts.h"
#include "metrics/metrics.h"
#include "metrics/ranks.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

class Glue final : public Metric {
  public:
    explicit Glue(const Settings& settings) : output_(output_index(settings)) {
        settings.allow_keys({"output", "task", "score"});
        const std::string task = one_of(settings, "task",
                                        {"mrpc", "cola", "sst-2", "sst2", "sts-b", "stsb", "qqp", "mnli",
                                         "mnli-mm", "qnli", "rte", "wnli"});
        score_ = task == "mrpc" ? "f1" : "accuracy";
        if (task == "cola") score_ = "matthews";
        if (task.starts_with("sts")) score_ = "correlation";
        if (!settings.has("score")) return;
        if (task != "mrpc" && task != "qqp")
            throw Error(fmt::format("{}{}'score' is for mrpc and qqp, the task is {}", settings.where(),
                                    settings.where().empty() ? "" : ": ", task));
        score_ = one_of(settings, "score", {"accuracy", "f1", "mean"});
    }

    void reset() override {
        said_.clear();
        truth_.clear();
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const size_t first = said_.size();
        const Rows rows(outputs, output_, labels.size(), first);
        std::vector<double> said, truth;
        if (score_ == "correlation") {
            require(rows.size() == 0 || rows.width() == 1,
                    "GLUE: output {} has the shape {}, expected one number for each sample", output_,
                    to_string(rows.shape()));
            for (size_t i = 0; i < rows.size(); ++i) {
                const std::vector<double> value = label_numbers(labels[i], "label", first + i);
                require(value.size() == 1, "'label' of sample {} has {} numbers, expected one", first + i,
                        value.size());
                said.push_back(rows[i][0]);
                truth.push_back(value[0]);
            }
        } else {
            for (const int64_t id : predicted_classes(rows, 0.5, first))
                said.push_back(static_cast<double>(id));
            for (size_t i = 0; i < labels.size(); ++i)
                truth.push_back(static_cast<double>(
                    label_class(labels[i], first + i, rows.width() > 1 ? rows.width() : 0)));
        }
        said_.insert(said_.end(), said.begin(), said.end());
        truth_.insert(truth_.end(), truth.begin(), truth.end());
    }

    double result() const override {
        require_samples(said_.size());
        if (score_ == "correlation")
            return (correlation(said_, truth_) + correlation(ranks(said_), ranks(truth_))) / 2;
        if (score_ == "matthews") return matthews();
        if (score_ == "f1") return f1();
        return score_ == "mean" ? (accuracy() + f1()) / 2 : accuracy();
    }

    std::vector<double> per_sample() const override {
        std::vector<double> scores;
        if (score_ != "accuracy") return scores;
        for (size_t i = 0; i < said_.size(); ++i) scores.push_back(said_[i] == truth_[i] ? 1 : 0);
        return scores;
    }
    std::pair<double, double> bounds() const override {
        return score_ == "accuracy" ? std::pair(0.0, 1.0) : Metric::bounds();
    }

  private:
    double accuracy() const {
        size_t right = 0;
        for (size_t i = 0; i < said_.size(); ++i) right += said_[i] == truth_[i];
        return static_cast<double>(right) / static_cast<double>(said_.size());
    }

    double f1() const {
        Counts counts;
        for (size_t i = 0; i < said_.size(); ++i)
            counts.add(static_cast<int64_t>(said_[i]), static_cast<int64_t>(truth_[i]));
        const auto found = counts.classes().find(1);
        return found == counts.classes().end() ? 0 : found->second.f1();
    }

    // For any number of classes; 0 when only one class was said or is true.
    double matthews() const {
        std::map<double, std::pair<double, double>> totals;  // how often each class was said, and was true
        double right = 0;
        const double n = static_cast<double>(said_.size());
        for (size_t i = 0; i < said_.size(); ++i) {
            ++totals[said_[i]].first;
            ++totals[truth_[i]].second;
            right += said_[i] == truth_[i];
        }
        double both = 0, said_squares = 0, true_squares = 0;
        for (const auto& [id, total] : totals) {
            both += total.first * total.second;
            said_squares += total.first * total.first;
            true_squares += total.second * total.second;
        }
        const double scale = std::sqrt(n * n - said_squares) * std::sqrt(n * n - true_squares);
        return scale == 0 ? 0 : (right * n - both) / scale;
    }

    int64_t output_;
    std::string score_;
    std::vector<double> said_, truth_;
};

}  // namespace

Made make_glue(const Settings& settings) { return std::make_unique<Glue>(settings); }

}  // namespace kilter::metrics
