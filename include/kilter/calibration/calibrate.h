// Calibration: one streaming FP32 pass over sample inputs that gives the Stats of every activation.
// Memory does not grow with the number of samples; the result does not depend on their order, nor on `instances`.
#pragma once

#include <functional>
#include <optional>

#include "kilter/calibration/stats.h"
#include "kilter/engine/program.h"

namespace kilter {

//! The next set of inputs in the order of Program::inputs(), or nothing at the end. Never called by two threads at once.
using SampleSource = std::function<std::optional<std::vector<Tensor>>()>;

struct CalibrationOptions {
    //! Runs side by side, each with the threads of the program; 0: as many as the cores allow. Programs with one thread
    //! calibrate fastest: samples side by side share nothing but the weights.
    int instances = 0;
    //! Told after every set of inputs how many are done; never by two threads at once.
    std::function<void(int64_t done)> progress;
};

//! Runs the program over all samples and watches its activations; the names are those of program.graph().
//! For the same samples the result is the same bit for bit, whatever their order and however many instances there are.
//! Throws Error when a sample does not fit the model, when there is none, when a value is NaN and when an input is
//! infinite: that names the sample (from 0) and the input, or the operator whose result first became NaN. Results that are
//! infinite on purpose (attention masks) get no statistics.
Stats calibrate(const Program& program, const SampleSource& next, const CalibrationOptions& options = {});
Stats calibrate(const Program& program, const std::vector<std::vector<Tensor>>& samples,
                const CalibrationOptions& options = {});

}  // namespace kilter
