#include "kilter/calibration/calibrate.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <thread>

#include "base/fail.h"
#include "calibration/collector.h"

namespace kilter {
namespace {

class Watch : public Observer {
  public:
    explicit Watch(Collector& collector) : collector_(collector) {}
    void observe(const Observation& observation) override { collector_.observe(observation); }

  private:
    Collector& collector_;
};

class Pass {
  public:
    Pass(const Program& program, const SampleSource& next, const CalibrationOptions& options)
        : program_(program), next_(next), options_(options), collector_(program.graph()) {}

    Stats run(int instances) {
        std::vector<std::thread> threads;
        for (int i = 1; i < instances; ++i) threads.emplace_back([this] { work(); });
        work();
        for (std::thread& thread : threads) thread.join();
        if (failure_ != nullptr) std::rethrow_exception(failure_);
        require(done_ > 0, "there are no calibration samples");
        Stats stats = collector_.stats();
        stats.samples = done_;
        return stats;
    }

  private:
    void work() {
        Watch watch(collector_);
        while (true) {
            int64_t number = 0;
            std::optional<std::vector<Tensor>> inputs;
            {
                const std::lock_guard lock(mutex_);
                if (ended_) return;
                number = started_++;
                try {
                    inputs = next_();
                } catch (...) {
                    fail_at(number, std::current_exception());
                }
                if (!inputs) ended_ = true;
                if (ended_) return;
            }
            std::exception_ptr failure;
            try {
                program_.run(*inputs, watch);
            } catch (const Error& error) {
                failure = std::make_exception_ptr(error.in(fmt::format("calibration sample {}", number)));
            } catch (...) {
                failure = std::current_exception();
            }
            const std::lock_guard lock(mutex_);
            if (failure != nullptr) {
                fail_at(number, failure);
                return;
            }
            ++done_;
            if (options_.progress) {
                try {
                    options_.progress(done_);
                } catch (...) {
                    fail_at(number, std::current_exception());
                }
            }
        }
    }

    // Samples are handed out in order, so all before this one are under way: the first failure is always the same.
    void fail_at(int64_t number, std::exception_ptr failure) {
        ended_ = true;
        if (number >= failed_) return;
        failed_ = number;
        failure_ = std::move(failure);
    }

    const Program& program_;
    const SampleSource& next_;
    const CalibrationOptions& options_;
    Collector collector_;
    std::mutex mutex_;
    bool ended_ = false;
    int64_t started_ = 0, done_ = 0;
    int64_t failed_ = std::numeric_limits<int64_t>::max();
    std::exception_ptr failure_;
};

}  // namespace

Stats calibrate(const Program& program, const SampleSource& next, const CalibrationOptions& options) {
    const int instances = options.instances > 0
                              ? options.instances
                              : std::max(available_cores() / std::max(program.options().threads, 1), 1);
    return Pass(program, next, options).run(instances);
}

Stats calibrate(const Program& program, const std::vector<std::vector<Tensor>>& samples,
                const CalibrationOptions& options) {
    size_t at = 0;
    return calibrate(
        program,
        [&]() -> std::optional<std::vector<Tensor>> {
            if (at == samples.size()) return std::nullopt;
            return samples[at++];
        },
        options);
}

}  // namespace kilter
