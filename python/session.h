// Session: a model as loaded, for save(), and the program made from it.
#pragma once

#include "arrays.h"
#include "kilter/engine/bench.h"
#include "kilter/engine/program.h"

namespace kilter::python {

class Session {
  public:
    Session(Model model, int threads, bool optimize)
        : model_(std::move(model)), program_(clone(model_), {.threads = threads, .optimize = optimize}) {}

    const Model& model() const { return model_; }
    const Program& program() const { return program_; }

    nb::list run(const nb::list& inputs) const {
        std::vector<Tensor> tensors = to_tensors(inputs);
        std::vector<Tensor> outputs;
        {
            const nb::gil_scoped_release unlocked;
            outputs = program_.run(tensors);
            tensors.clear();
        }
        nb::list list;
        for (Tensor& output : outputs) list.append(to_python(std::move(output)));
        return list;
    }

    BenchResult bench(int64_t batch, const std::map<std::string, Shape>& shapes, int instances,
                      double seconds, int64_t iterations) const {
        const nb::gil_scoped_release unlocked;
        const auto resolved = resolve_shapes(program_.inputs(), {batch, shapes});
        const std::vector<Tensor> inputs = made_up_inputs(program_.inputs(), resolved);
        return kilter::bench(program_, inputs, {instances, seconds, iterations, {}});
    }

    std::vector<StepReport> profile(int64_t batch, const std::map<std::string, Shape>& shapes) const {
        const nb::gil_scoped_release unlocked;
        const auto resolved = resolve_shapes(program_.inputs(), {batch, shapes});
        return program_.profile(made_up_inputs(program_.inputs(), resolved));
    }

  private:
    Model model_;
    Program program_;
};

//! quantize, calibrate and compare.
void bind_quantization(nb::module_& module);
//! Metrics by their names.
void bind_metrics(nb::module_& module);
//! Datasets, transforms and the loader.
void bind_data(nb::module_& module);

}  // namespace kilter::python
