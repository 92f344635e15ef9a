// Collector: turns observations into Stats. Any number of threads may observe at once; each works on tallies of its own,
// which are merged exactly in the end, so neither the number of threads nor the order of samples shows in the result.
#pragma once

#include <memory>
#include <mutex>

#include "calibration/counter.h"
#include "kilter/calibration/stats.h"
#include "kilter/engine/observer.h"

namespace kilter {

class Collector {
  public:
    explicit Collector(const Graph& graph);
    ~Collector();

    //! Throws Error when a value is NaN or an input infinite, naming the input or the operator. An infinite result, such as an
    //! attention mask, gets no statistics: it cannot be quantized.
    void observe(const Observation& observation);
    //! What was seen so far; not while somebody observes.
    Stats stats() const;

  private:
    struct Tally;
    struct Slot;
    //! A slot nobody else uses, given back when the loan ends.
    class Loan;

    struct Known {
        std::string name;
        int channel_axis;
        bool infinite = false;  // seen infinite: there is no range to choose, so it has no statistics
    };
    std::vector<Known> known_;
    std::map<std::string, size_t, std::less<>> index_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<Slot*> idle_;
};

//! The axis whose figures are kept apart: see ValueStats::channel_axis. -1 when the size along it is not fixed.
int channel_axis(const Value& value);

}  // namespace kilter
