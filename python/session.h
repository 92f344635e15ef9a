// Session: a model as loaded, for save(), and the program made from it. ProgramSession: what runs, whoever owns it.
#pragma once

#include <optional>

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
    void take_back() { program_ = nullptr; }

    nb::list run(const nb::list& inputs) const {
        const Program& program = this->program();
        std::vector<Tensor> tensors = to_tensors(inputs);
        std::vector<Tensor> outputs;
        {
            const nb::gil_scoped_release unlocked;
            outputs = program.run(tensors);
            tensors.clear();
        }
        nb::list list;
        for (Tensor& output : outputs) list.append(to_python(std::move(output)));
        return list;
    }

    BenchResult bench(int64_t batch, const std::map<std::string, Shape>& shapes, int instances,
                      double seconds, int64_t iterations) const {
        const nb::gil_scoped_release unlocked;
        const auto resolved = resolve_shapes(program().inputs(), {batch, shapes});
        const std::vector<Tensor> inputs = made_up_inputs(program().inputs(), resolved);
        return kilter::bench(program(), inputs, {instances, seconds, iterations, {}});
    }

    std::vector<StepReport> profile(int64_t batch, const std::map<std::string, Shape>& shapes) const {
        const nb::gil_scoped_release unlocked;
        const auto resolved = resolve_shapes(program().inputs(), {batch, shapes});
        return program().profile(made_up_inputs(program().inputs(), resolved));
    }

    //! (operator, what it computed) in the order of the graph.
    nb::list inspect(const nb::list& inputs) const {
        const std::vector<Tensor> tensors = to_tensors(inputs);
        std::vector<std::pair<std::string, Tensor>> results;
        {
            const nb::gil_scoped_release unlocked;
            results = operator_results(program(), tensors);
        }
        nb::list list;
        for (auto& [name, tensor] : results) list.append(nb::make_tuple(name, to_python(std::move(tensor))));
        return list;
    }

  private:
    const Program* program_;
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
//! convert_graph.
void bind_tensorflow(nb::module_& module);
//! Strategies written in Python.
void bind_strategies(nb::module_& module);

}  // namespace kilter::python
