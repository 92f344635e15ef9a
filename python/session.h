// Session: a model as loaded, for save(), and the program made from it. ProgramSession: what runs, whoever owns it.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "arrays.h"
#include "kilter/base/error.h"
#include "kilter/config/config.h"
#include "kilter/engine/bench.h"
#include "kilter/engine/compare.h"
#include "kilter/engine/program.h"
#include "kilter/formats/onnx.h"

namespace kilter::python {

class ProgramSession {
  public:
    explicit ProgramSession(const Program* program) : program_(program) {}
    virtual ~ProgramSession() = default;

    //! Throws Error when the program was only lent and is taken back.
    const Program& program() const {
        if (program_ == nullptr)
            throw Error("this model was lent for one evaluation, which is over",
                        "kilter.recover builds the model of any trial again");
        return *program_;
    }
    //! Waits for runs that other threads have begun.
    void take_back() {
        const nb::gil_scoped_release unlocked;
        const std::unique_lock lock(lent_);
        program_ = nullptr;
    }

    nb::list run(const nb::list& inputs) const {
        std::vector<Tensor> tensors = to_tensors(inputs);
        std::vector<Tensor> outputs;
        {
            const nb::gil_scoped_release unlocked;
            const std::shared_lock lock(lent_);
            outputs = program().run(tensors);
            tensors.clear();
        }
        // One value may be several outputs: whoever writes into one of them does not expect to change another.
        for (auto output = outputs.begin(); output != outputs.end(); ++output)
            if (std::any_of(outputs.begin(), output,
                            [&](const Tensor& earlier) { return share(earlier, *output); }))
                *output = output->clone();
        nb::list list;
        for (Tensor& output : outputs) list.append(to_python(std::move(output)));
        return list;
    }

    BenchResult bench(int64_t batch, const std::map<std::string, Shape>& shapes, int instances,
                      double seconds, int64_t iterations) const {
        const nb::gil_scoped_release unlocked;
        const std::shared_lock lock(lent_);
        const auto resolved = resolve_shapes(program().inputs(), {batch, shapes});
        const std::vector<Tensor> inputs = made_up_inputs(program().inputs(), resolved);
        return kilter::bench(program(), inputs, {instances, seconds, iterations, {}});
    }

    std::vector<StepReport> profile(int64_t batch, const std::map<std::string, Shape>& shapes) const {
        const nb::gil_scoped_release unlocked;
        const std::shared_lock lock(lent_);
        const auto resolved = resolve_shapes(program().inputs(), {batch, shapes});
        return program().profile(made_up_inputs(program().inputs(), resolved));
    }

    //! (operator, what it computed) in the order of the graph.
    nb::list inspect(const nb::list& inputs) const {
        const std::vector<Tensor> tensors = to_tensors(inputs);
        std::vector<std::pair<std::string, Tensor>> results;
        {
            const nb::gil_scoped_release unlocked;
            const std::shared_lock lock(lent_);
            results = operator_results(program(), tensors);
        }
        nb::list list;
        for (auto& [name, tensor] : results) list.append(nb::make_tuple(name, to_python(std::move(tensor))));
        return list;
    }

  private:
    static bool share(const Tensor& a, const Tensor& b) {
        const bool texts =
            a.dtype() == DType::string || a.dtype() == DType::sequence || a.dtype() == DType::nothing;
        return !texts && a.dtype() == b.dtype() && a.size() > 0 && a.raw() == b.raw();
    }

    const Program* program_;
    mutable std::shared_mutex lent_;  // held by runs
};

class Session : public ProgramSession {
  public:
    Session(Model model, int threads, bool optimize)
        : ProgramSession(&own_),
          model_(std::move(model)),
          own_(clone(model_), {.threads = threads, .optimize = optimize}) {}

    const Model& model() const { return model_; }
    //! The file that save() writes.
    virtual std::string serialized() const { return onnx::write_bytes(model_); }

  private:
    Model model_;
    Program own_;
};

//! A file, a dict or None: the configuration it holds. Throws Error.
std::optional<Config> config_of(const nb::object& config);

//! What configurations say.
void bind_config(nb::module_& module);
//! quantize, calibrate and compare.
void bind_quantization(nb::module_& module);
//! Metrics by their names.
void bind_metrics(nb::module_& module);
//! Datasets, transforms and the loader.
void bind_data(nb::module_& module);
//! tune, sensitivity and recover.
void bind_tuning(nb::module_& module);
//! tune_graph: graphs that TensorFlow runs.
void bind_hosted(nb::module_& module);
//! convert_graph, and its stages.
void bind_tensorflow(nb::module_& module);
//! Strategies written in Python.
void bind_strategies(nb::module_& module);

}  // namespace kilter::python
