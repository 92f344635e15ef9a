// topk: the share of samples whose class is among the k best scores. Of equal scores the lower class ranks first, so that
// k 1 is what argmax says in every runtime; outputs that are classes already ([n], or one integer per row) count with k 1.
#include "base/fail.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

// How many classes rank before this one.
int64_t rank(std::span<const double> scores, int64_t id) {
    const double score = scores[static_cast<size_t>(id)];
    int64_t before = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(scores.size()); ++i) {
        const double other = scores[static_cast<size_t>(i)];
        before += other > score || (other == score && i < id);
    }
    return before;
}

class TopK final : public MeanMetric {
  public:
    explicit TopK(const Settings& settings) : output_(output_index(settings)), k_(settings.get("k", 1)) {
        settings.allow_keys({"k", "output"});
        if (k_ < 1) settings.get("k").reject("how many classes count, at least 1");
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const size_t first = scores_.size();
        const Rows rows(outputs, output_, labels.size(), first);
        const bool ids = rows.width() == 1;
        require(rows.is_vector() && (rows.width() > 0 || rows.size() == 0),
                "topk: output {} has the shape {}, expected [samples, classes]", output_,
                to_string(rows.shape()));
        require(!ids || k_ == 1, "topk with k {} needs scores of all classes, output {} has the shape {}", k_,
                output_, to_string(rows.shape()));
        std::vector<double> scores;
        for (size_t i = 0; i < rows.size(); ++i) {
            const int64_t truth = label_class(labels[i], first + i, ids ? 0 : rows.width());
            const bool right =
                ids ? whole(rows[i][0], "the output", first + i) == truth : rank(rows[i], truth) < k_;
            scores.push_back(right ? 1 : 0);
        }
        scores_.insert(scores_.end(), scores.begin(), scores.end());
    }

    std::pair<double, double> bounds() const override { return {0, 1}; }

  private:
    int64_t output_;
    int64_t k_;
};

}  // namespace

Made make_topk(const Settings& settings) { return std::make_unique<TopK>(settings); }

}  // namespace kilter::metrics
