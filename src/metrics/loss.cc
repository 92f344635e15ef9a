// Loss: the mean of what the model puts out, for models that compute their loss themselves. One number for each sample, or one
// for the whole batch, which then counts for each of its samples.
#include <cmath>

#include "base/fail.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

class Loss final : public MeanMetric {
  public:
    explicit Loss(const Settings& settings) : output_(output_index(settings)) {
        settings.allow_keys({"output"});
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        if (labels.empty()) return;
        require(output_ < static_cast<int64_t>(outputs.size()),
                "the metric judges output {}, the model has {} outputs", output_, outputs.size());
        const Tensor& output = outputs[static_cast<size_t>(output_)];
        require(output.dtype() != DType::string, "output {} holds text, expected numbers", output_);
        const std::vector<double> values = output.to_doubles();
        require(values.size() == labels.size() || values.size() == 1,
                "Loss: output {} has the shape {}, expected one number for each of {} samples, or one in all",
                output_, to_string(output.shape()), labels.size());
        for (size_t i = 0; i < values.size(); ++i)
            if (std::isnan(values[i]))
                throw NotANumber(fmt::format("output {} is NaN for sample {}", output_, scores_.size() + i));
        for (size_t i = 0; i < labels.size(); ++i) scores_.push_back(values[values.size() == 1 ? 0 : i]);
    }

    bool higher_is_better() const override { return false; }

  private:
    int64_t output_;
};

}  // namespace

Made make_loss(const Settings& settings) { return std::make_unique<Loss>(settings); }

}  // namespace kilter::metrics
