// mIOU: the mean over classes of intersection over union of pixels. Labels outside 0 … num_classes - 1 (like 255) are not
// judged; classes that neither labels nor outputs name do not count. Outputs are classes, or scores [n, classes, h, w] or
// [n, h, w, classes].
#include "base/fail.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

class MeanIou final : public Metric {
  public:
    explicit MeanIou(const Settings& settings)
        : output_(output_index(settings)), classes_(settings.get("num_classes", 21)) {
        settings.allow_keys({"output", "num_classes"});
        constexpr int64_t kMost = 10'000;
        if (classes_ < 1 || classes_ > kMost) settings.get("num_classes").reject("a number of classes");
        reset();
    }

    void reset() override {
        samples_ = 0;
        said_.assign(static_cast<size_t>(classes_), 0);
        truth_ = both_ = said_;
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const Rows rows(outputs, output_, labels.size(), samples_);
        std::vector<std::pair<int64_t, int64_t>> pixels;
        for (size_t i = 0; i < rows.size(); ++i) {
            const std::vector<double> truth = label_numbers(labels[i], "label", samples_ + i);
            const std::vector<int64_t> said = classes_of(rows, i, truth.size());
            for (size_t j = 0; j < truth.size(); ++j)
                pixels.emplace_back(said[j], whole(truth[j], "'label'", samples_ + i));
        }
        for (const auto& [said, truth] : pixels) {
            if (truth < 0 || truth >= classes_) continue;
            ++said_[static_cast<size_t>(said)];
            ++truth_[static_cast<size_t>(truth)];
            if (said == truth) ++both_[static_cast<size_t>(truth)];
        }
        samples_ += labels.size();
    }

    double result() const override {
        require_samples(samples_);
        double sum = 0;
        int64_t seen = 0;
        for (size_t i = 0; i < said_.size(); ++i) {
            const int64_t either = said_[i] + truth_[i] - both_[i];
            if (either == 0) continue;
            sum += static_cast<double>(both_[i]) / static_cast<double>(either);
            ++seen;
        }
        require(seen > 0, "mIOU: no pixel of the labels has a class from 0 to {}", classes_ - 1);
        return sum / static_cast<double>(seen);
    }

  private:
    std::vector<int64_t> classes_of(const Rows& rows, size_t row, size_t pixels) const {
        const std::span<const double> values = rows[row];
        const size_t classes = static_cast<size_t>(classes_);
        const size_t sample = samples_ + row;
        std::vector<int64_t> said(pixels);
        if (values.size() == pixels) {
            for (size_t i = 0; i < pixels; ++i) {
                said[i] = whole(values[i], "the output", sample);
                require(said[i] >= 0 && said[i] < classes_,
                        "mIOU: the output names class {} for sample {}, of {} classes", said[i], sample,
                        classes_);
            }
            return said;
        }
        const Shape& shape = rows.shape();
        const bool first = shape.size() > 1 && shape[1] == classes_;
        require(
            values.size() == pixels * classes && (first || shape.back() == classes_),
            "mIOU: output {} has the shape {}, the label of sample {} has {} pixels and there are {} classes",
            output_, to_string(shape), sample, pixels, classes_);
        const size_t class_step = first ? pixels : 1, pixel_step = first ? 1 : classes;
        for (size_t i = 0; i < pixels; ++i) {
            size_t best = 0;
            for (size_t c = 1; c < classes; ++c)
                if (values[i * pixel_step + c * class_step] > values[i * pixel_step + best * class_step])
                    best = c;
            said[i] = static_cast<int64_t>(best);
        }
        return said;
    }

    int64_t output_;
    int64_t classes_;
    size_t samples_ = 0;
    std::vector<int64_t> said_, truth_, both_;  // pixels of each class
};

}  // namespace

Made make_miou(const Settings& settings) { return std::make_unique<MeanIou>(settings); }

}  // namespace kilter::metrics
