// What all kinds of tuning have in common in Python: options in, news on the way, the result out.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "kilter/tuning/tune.h"
#include "session.h"
#include "trials.h"

namespace kilter::python {

//! A Python object that may be called and released by any thread.
class Callback {
  public:
    explicit Callback(nb::object object)
        : object_(new nb::object(std::move(object)), [](nb::object* kept) {
              const nb::gil_scoped_acquire gil;
              delete kept;
          }) {}
    const nb::object& operator*() const { return *object_; }

  private:
    std::shared_ptr<nb::object> object_;
};

//! Ctrl-C reaches Python only where somebody asks for it, and so does news for a progress bar, though not too often.
class Watch {
  public:
    explicit Watch(const std::optional<nb::callable>& working) {
        if (working) working_.emplace(*working);
    }

    void operator()(const std::string& what, int64_t done, int64_t of) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!working_) return;
        const auto now = std::chrono::steady_clock::now();
        if (what == what_ && now - told_ < std::chrono::milliseconds(100)) return;
        what_ = what;
        told_ = now;
        (**working_)(what, done, of);
    }

    //! Samples of an evaluation, which is part of what was said last.
    void evaluated(int64_t samples) { (*this)(what_, samples, samples_); }
    //! How many samples an evaluation has, once that is known.
    void expect(int64_t samples) { samples_ = samples; }

  private:
    std::optional<Callback> working_;
    std::string what_;
    int64_t samples_ = 0;
    std::chrono::steady_clock::time_point told_;
};

//! Everything but how accuracy is measured. What is absent or None stays as it is.
void apply_search_words(const nb::dict& words, TuneOptions& options);

//! News of a search go to `watch` and `told`, which outlive it; `fp32` becomes the baseline.
void listen(TuneOptions& options, Watch& watch, const std::optional<nb::callable>& told, Outcome& fp32);

nb::dict to_dict(const StudyResult& result);

}  // namespace kilter::python
