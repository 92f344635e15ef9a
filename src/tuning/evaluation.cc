#include "kilter/tuning/evaluation.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "base/fail.h"
#include "tuning/betting.h"
#include "tuning/hash.h"

namespace kilter {
namespace {

size_t bytes_of(const Batch& batch) {
    size_t bytes = 0;
    for (const Tensor& input : batch.inputs) bytes += input.bytes();
    return bytes;
}

void add_tensor(Hash& hash, const Tensor& tensor) {
    hash.add(static_cast<uint64_t>(tensor.dtype()));
    for (const int64_t size : tensor.shape()) hash.add(static_cast<uint64_t>(size));
    if (tensor.dtype() == DType::string) {
        for (const std::string& text : tensor.as_strings()) hash.add(std::string_view(text));
    } else if (tensor.raw() != nullptr) {
        hash.add(std::span(static_cast<const std::byte*>(tensor.raw()), tensor.bytes()));
    }
}

class ByMetrics : public Evaluation {
  public:
    ByMetrics(std::function<BatchSource()> open, std::vector<std::unique_ptr<Metric>> metrics,
              EvaluationOptions options)
        : open_(std::move(open)), metrics_(std::move(metrics)), options_(std::move(options)) {
        require(!metrics_.empty(), "there is no metric to evaluate with");
        if (options_.instances <= 0) options_.instances = available_cores();
    }

    int threads() const override { return options_.instances > 1 ? 1 : 0; }

    std::vector<bool> higher_is_better() const override {
        std::vector<bool> higher;
        for (const auto& metric : metrics_) higher.push_back(metric->higher_is_better());
        return higher;
    }
    std::pair<double, double> bounds() const override { return metrics_.front()->bounds(); }

    EvaluationRun run(const Program& program, const Rejection* rejection) override {
        for (const auto& metric : metrics_) metric->reset();
        const bool paired = rejection != nullptr && rejection->baseline != nullptr && metrics_.size() == 1;
        std::optional<Betting> betting;
        if (paired) betting = make_betting(*rejection);
        EvaluationRun result;
        size_t compared = 0;
        go_through(program, [&](const Batch& batch, const std::vector<Tensor>& outputs) {
            const std::vector<Label>& labels =
                reference_.empty() ? batch.labels : with_reference(batch, result.samples);
            for (const auto& metric : metrics_) metric->update(outputs, labels);
            result.samples += batch.size();
            if (options_.progress) options_.progress(result.samples);
            if (!betting) return true;
            const std::vector<double> seen = metrics_.front()->per_sample();
            const std::vector<double>& baseline = *rejection->baseline;
            for (; compared < std::min(seen.size(), baseline.size()); ++compared)
                if (betting->add(loss(baseline[compared], seen[compared], *rejection)))
                    result.rejected = true;
            return !result.rejected;
        });
        require(result.samples > 0, "there are no samples to evaluate with");
        for (const auto& metric : metrics_) result.accuracy.push_back(metric->result());
        if (metrics_.size() == 1) result.per_sample = metrics_.front()->per_sample();
        if (paired && compared == rejection->baseline->size())
            result.rejected = false;  // all were seen: the figure counts
        return result;
    }

    std::vector<Component> metrics() const override { return options_.metrics; }

    bool needs_reference() const override {
        return std::ranges::any_of(metrics_, [](const auto& metric) { return metric->needs_reference(); });
    }

    void set_reference(const Program& fp32) override {
        reference_.clear();
        go_through(fp32, [&](const Batch& batch, const std::vector<Tensor>& outputs) {
            for (int64_t i = 0; i < batch.size(); ++i) {
                Label entries;
                for (size_t j = 0; j < outputs.size(); ++j)
                    if (outputs[j].rank() > 0 && outputs[j].dim(0) == batch.size())
                        entries[reference_entry(static_cast<int64_t>(j))] = row(outputs[j], i);
                reference_.push_back(std::move(entries));
            }
            return true;
        });
    }

    uint64_t fingerprint() override {
        if (fingerprint_ == 0) {
            const BatchSource next = source();
            Hash hash;
            while (const std::optional<Batch> batch = next()) {
                for (const Tensor& input : batch->inputs) add_tensor(hash, input);
                for (const Label& label : batch->labels)
                    for (const auto& [name, tensor] : label) {
                        hash.add(std::string_view(name));
                        add_tensor(hash, tensor);
                    }
            }
            fingerprint_ = hash.value();
        }
        return fingerprint_;
    }

  private:
    static Tensor row(const Tensor& tensor, int64_t index) {
        Shape shape(tensor.shape().begin() + 1, tensor.shape().end());
        const size_t bytes = tensor.bytes() / static_cast<size_t>(tensor.dim(0));
        return Tensor::view(tensor.dtype(), std::move(shape),
                            static_cast<const std::byte*>(tensor.raw()) + static_cast<size_t>(index) * bytes)
            .clone();
    }

    // The labels of a batch that starts at sample `first`, with what FP32 gave.
    const std::vector<Label>& with_reference(const Batch& batch, int64_t first) {
        labels_ = batch.labels;
        for (size_t i = 0; i < labels_.size(); ++i)
            for (const auto& [name, tensor] : reference_.at(static_cast<size_t>(first) + i))
                labels_[i][name] = tensor;
        return labels_;
    }

    // How much worse a sample got, from [low - high, high - low] to [0, 1].
    static double loss(double before, double after, const Rejection& rejection) {
        const double range = rejection.high - rejection.low;
        const double worse = rejection.higher_is_better ? before - after : after - before;
        return (worse / range + 1) / 2;
    }

    static std::optional<Betting> make_betting(const Rejection& rejection) {
        const double range = rejection.high - rejection.low;
        if (!(range > 0) || range == std::numeric_limits<double>::infinity() || rejection.baseline->empty())
            return std::nullopt;
        return Betting(static_cast<int64_t>(rejection.baseline->size()),
                       (rejection.allowed_loss / range + 1) / 2, rejection.doubt);
    }

    // The samples: from memory when they are all there, otherwise from where they come, remembering what there is room for.
    BatchSource source() {
        if (complete_) {
            auto position = std::make_shared<size_t>(0);
            return [this, position]() -> std::optional<Batch> {
                if (*position == kept_.size()) return std::nullopt;
                return kept_[(*position)++];
            };
        }
        kept_.clear();
        auto bytes = std::make_shared<size_t>(0);
        return [this, bytes, next = open_()]() -> std::optional<Batch> {
            std::optional<Batch> batch = next();
            if (!batch) {
                complete_ = *bytes <= options_.memory;
                return batch;
            }
            *bytes += bytes_of(*batch);
            if (*bytes <= options_.memory)
                kept_.push_back(*batch);
            else
                kept_.clear();
            return batch;
        };
    }

    // Runs the program over all batches; `take` sees them in order and says whether to go on.
    void go_through(const Program& program,
                    const std::function<bool(const Batch&, const std::vector<Tensor>&)>& take) {
        const BatchSource next = source();
        if (options_.instances == 1) {
            while (const std::optional<Batch> batch = next())
                if (!take(*batch, program.run(batch->inputs))) return;
            return;
        }
        struct Slot {
            Batch batch;
            std::vector<Tensor> outputs;
            bool done = false;
        };
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<std::shared_ptr<Slot>> queue;  // in order; taken from the front when done
        bool stop = false;
        bool exhausted = false;
        std::exception_ptr error;
        const size_t ahead = 2 * static_cast<size_t>(options_.instances);
        const auto work = [&] {
            while (true) {
                std::shared_ptr<Slot> slot;
                {
                    std::unique_lock lock(mutex);
                    changed.wait(lock, [&] { return stop || exhausted || queue.size() < ahead; });
                    if (stop || exhausted) return;
                    try {
                        std::optional<Batch> batch = next();
                        if (!batch) {
                            exhausted = true;
                            changed.notify_all();
                            return;
                        }
                        slot = std::make_shared<Slot>();
                        slot->batch = std::move(*batch);
                        queue.push_back(slot);
                    } catch (...) {
                        error = std::current_exception();
                        stop = true;
                        changed.notify_all();
                        return;
                    }
                }
                try {
                    slot->outputs = program.run(slot->batch.inputs);
                    const std::lock_guard lock(mutex);
                    slot->done = true;
                } catch (...) {
                    const std::lock_guard lock(mutex);
                    if (!error) error = std::current_exception();
                    stop = true;
                }
                changed.notify_all();
            }
        };
        std::vector<std::thread> workers;
        for (int i = 0; i < options_.instances; ++i) workers.emplace_back(work);
        const auto finish = [&] {
            {
                const std::lock_guard lock(mutex);
                stop = true;
            }
            changed.notify_all();
            for (std::thread& worker : workers) worker.join();
        };
        try {
            while (true) {
                std::shared_ptr<Slot> slot;
                {
                    std::unique_lock lock(mutex);
                    changed.wait(lock, [&] {
                        return error || (!queue.empty() && queue.front()->done) ||
                               (queue.empty() && exhausted);
                    });
                    if (error || queue.empty()) break;
                    slot = queue.front();
                    queue.pop_front();
                }
                changed.notify_all();
                if (!take(slot->batch, slot->outputs)) break;
            }
        } catch (...) {
            finish();
            throw;
        }
        finish();
        if (error) std::rethrow_exception(error);
    }

    std::function<BatchSource()> open_;
    std::vector<std::unique_ptr<Metric>> metrics_;
    EvaluationOptions options_;
    std::vector<Batch> kept_;
    bool complete_ = false;  // kept_ holds all samples
    uint64_t fingerprint_ = 0;
    std::vector<Label> reference_;  // what FP32 gave for each sample
    std::vector<Label> labels_;     // of the batch at hand
};

class ByFunction : public Evaluation {
  public:
    ByFunction(std::function<Accuracy(const Program&)> function, std::vector<bool> higher_is_better)
        : function_(std::move(function)), higher_(std::move(higher_is_better)) {}
    std::vector<bool> higher_is_better() const override { return higher_; }
    EvaluationRun run(const Program& program, const Rejection* /*rejection*/) override {
        EvaluationRun result;
        result.accuracy = function_(program);
        require(result.accuracy.size() == higher_.size(),
                "the evaluation function gave {} figures; expected {}", result.accuracy.size(),
                higher_.size());
        return result;
    }

  private:
    std::function<Accuracy(const Program&)> function_;
    std::vector<bool> higher_;
};

}  // namespace

std::pair<double, double> Evaluation::bounds() const {
    return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
}

std::unique_ptr<Evaluation> evaluate_with(std::function<BatchSource()> open,
                                          std::vector<std::unique_ptr<Metric>> metrics,
                                          EvaluationOptions options) {
    return std::make_unique<ByMetrics>(std::move(open), std::move(metrics), std::move(options));
}

std::unique_ptr<Evaluation> evaluate_with(std::function<Accuracy(const Program&)> function,
                                          std::vector<bool> higher_is_better) {
    return std::make_unique<ByFunction>(std::move(function), std::move(higher_is_better));
}

}  // namespace kilter
