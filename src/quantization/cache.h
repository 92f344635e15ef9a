// What quantize() need not compute twice for one prepared model and its statistics: integer weights and ranges.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "kilter/quantization/quantize.h"

namespace kilter {

//! Weights of one operator as integers, and what came of making them.
struct QuantizedWeights {
    QuantParams params;
    Tensor integers;
    Tensor bias_shift;  // of the recipe bias_correction; may be empty
    std::string remark;
    int64_t shrunk_channels = 0;
};

class QuantizationCache {
  public:
    //! What is remembered under `key`, or what `make` gives. Keys say all that the result depends on, except the model and the
    //! statistics.
    QuantizedWeights weights(const std::string& key, const std::function<QuantizedWeights()>& make) {
        return remember(weights_, key, make);
    }
    Range range(const std::string& key, const std::function<Range()>& make) {
        return remember(ranges_, key, make);
    }

  private:
    template <class T>
    T remember(std::unordered_map<std::string, T>& entries, const std::string& key,
               const std::function<T()>& make) {
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = entries.find(key); found != entries.end()) return found->second;
        }
        T made = make();
        const std::lock_guard lock(mutex_);
        return entries.emplace(key, std::move(made))
            .first->second;  // the first one stays: its bytes are shared
    }

    std::mutex mutex_;
    std::unordered_map<std::string, QuantizedWeights> weights_;
    std::unordered_map<std::string, Range> ranges_;
};

}  // namespace kilter
