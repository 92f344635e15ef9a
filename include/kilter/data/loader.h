// Loader: batches of transformed samples, prepared ahead of time on threads of its own.
// Which samples a batch holds depends on the options only, never on the number of threads.
#pragma once

#include <optional>

#include "kilter/data/dataset.h"
#include "kilter/data/transforms.h"

namespace kilter {

enum class OnError {
    stop,   // next() throws what is wrong with a sample
    count,  // the sample is left out, the next ones move up, errors() tells
};

struct LoaderOptions {
    int64_t batch_size = 1;
    bool drop_last =
        false;  // a last batch with fewer samples is dropped (last_batch: discard) or given (rollover)
    bool shuffle = false;
    uint64_t seed = 0;  // of the order
    int threads = 0;    // that prepare samples; 0: as many as there are cores, at most 4
    OnError on_error = OnError::stop;
    int64_t limit = 0;  // take so many samples (of the shuffled ones, if they are); 0: all
};

class Loader {
  public:
    Loader(std::shared_ptr<const Dataset> dataset, Transforms transforms, LoaderOptions options = {});
    ~Loader();
    Loader(Loader&&) noexcept;
    Loader& operator=(Loader&&) noexcept;

    //! The next batch, or nothing at the end. Throws Error that names the sample that is damaged or does not fit.
    std::optional<Batch> next();
    //! Starts again with the same samples in the same order.
    void rewind();
    //! How many samples it goes through, good and damaged ones.
    int64_t samples() const;
    const LoaderOptions& options() const;
    //! What was wrong with the samples left out since the start or rewind(), in their order.
    std::vector<std::string> errors() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

//! Samples stacked along a new first axis. Throws Error when their shapes or types differ.
Batch stack(std::vector<Sample> samples);

}  // namespace kilter
