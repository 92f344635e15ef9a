// Measuring a Program: shapes for open dimensions, inputs to run it with, and timed runs side by side.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kilter/engine/program.h"

namespace kilter {

struct ShapeOptions {
    int64_t batch = 0;  // size of an open first dimension; 0: one
    //! Shape of an input, or under the name of a symbolic dimension its size: {"input_ids", {1, 128}}, {"sequence", {128}}.
    std::map<std::string, Shape> shapes;
};

//! A shape for every input. Throws Error when a dimension stays open, or an option contradicts the model or names nothing in it.
std::vector<Shape> resolve_shapes(const std::vector<Port>& inputs, const ShapeOptions& options);

//! Made-up inputs, the same for the same shapes: floats in [-1, 1), integers 0 or 1, which every vocabulary holds.
std::vector<Tensor> made_up_inputs(const std::vector<Port>& inputs, const std::vector<Shape>& shapes);

struct BenchOptions {
    int instances = 1;       // independent runs side by side
    double seconds = 3;      // how long to measure, after warming up
    int64_t iterations = 0;  // per instance; 0: as many as fit into `seconds`
    //! Told now and then how much is done, from 0 to 1.
    std::function<void(double)> progress;
};

struct BenchResult {
    std::vector<double> milliseconds;   // of every run, sorted
    double seconds = 0;                 // wall time of the measured part
    double percentile(double p) const;  // p in [0, 100]
    double median() const { return percentile(50); }
    double runs_per_second() const { return static_cast<double>(milliseconds.size()) / seconds; }
};

BenchResult bench(const Program& program, const std::vector<Tensor>& inputs,
                  const BenchOptions& options = {});

}  // namespace kilter
