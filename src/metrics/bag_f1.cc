// bag_f1: what the old tool called F1. The numbers of a batch and of its labels are two bags; F1 of their overlap, then the
// plain mean over batches, so the result depends on the batch size. It is here to compare with old figures.
#include <map>
#include <numeric>

#include "metrics/metrics.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

class BagF1 final : public Metric {
  public:
    explicit BagF1(const Settings& settings) : output_(output_index(settings)) {
        settings.allow_keys({"output"});
    }

    void reset() override {
        batches_.clear();
        samples_ = 0;
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const Rows rows(outputs, output_, labels.size(), samples_);
        if (rows.size() == 0) return;
        std::map<double, int64_t> bag;
        size_t said = 0, truth = 0;
        int64_t common = 0;
        for (size_t i = 0; i < rows.size(); ++i)
            for (const double value : rows[i]) {
                ++bag[value];
                ++said;
            }
        for (size_t i = 0; i < labels.size(); ++i)
            for (const double value : label_numbers(labels[i], "label", samples_ + i)) {
                const auto found = bag.find(value);
                if (found != bag.end() && found->second-- > 0) ++common;
                ++truth;
            }
        batches_.push_back(
            said + truth == 0 ? 0 : 2.0 * static_cast<double>(common) / static_cast<double>(said + truth));
        samples_ += labels.size();
    }

    double result() const override {
        require_samples(samples_);
        return std::accumulate(batches_.begin(), batches_.end(), 0.0) / static_cast<double>(batches_.size());
    }

  private:
    int64_t output_;
    std::vector<double> batches_;
    size_t samples_ = 0;
};

}  // namespace

Made make_bag_f1(const Settings& settings) { return std::make_unique<BagF1>(settings); }

}  // namespace kilter::metrics
