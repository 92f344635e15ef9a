// Program: a model compiled for this machine, ready to run. Immutable from outside and safe to run from many threads.
// Compilation happens once per combination of input shapes; plans are cached, packed weights are shared between them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter {

class Observer;

struct EngineOptions {
    int threads = 0;         // threads within one run; 0: all cores this process may use
    bool optimize = true;    // run the passes; off, every operator of the source model runs as it stands
    bool reference = false;  // run everything through the scalar kernels: the oracle, slow
};

struct Port {
    std::string name;
    ValueType type;
};

//! One executed step, for the per-operator table.
struct StepReport {
    std::string name;    // operator of the source model, or of the one a reorder serves
    std::string op;      // operator type, or "reorder" for what the engine inserted
    std::string kernel;  // implementation that ran, e.g. "jit_1x1:avx512_core" or "ref"
    std::string shape;   // of the result
    double milliseconds = 0;
};

class Program {
  public:
    //! Takes a model as read: brings it to canonical form, optimizes it and checks it. Throws Error.
    explicit Program(Model model, EngineOptions options = {});
    ~Program();
    Program(Program&&) noexcept;
    Program& operator=(Program&&) noexcept;

    const std::vector<Port>& inputs() const;
    const std::vector<Port>& outputs() const;
    const EngineOptions& options() const;
    const Graph& graph() const;  // as optimized

    //! Inputs in the order of inputs(), row-major; they are read in place. Outputs own their memory. Thread-safe.
    //! Throws Error when a type, rank or fixed dimension does not fit.
    std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
    //! The same, and shows every float32 value to `observer` (kilter/engine/observer.h).
    std::vector<Tensor> run(const std::vector<Tensor>& inputs, Observer& observer) const;

    //! Median time of every step over `repetitions` runs.
    std::vector<StepReport> profile(const std::vector<Tensor>& inputs, int repetitions = 10) const;

    //! Bytes of activation memory one run with these inputs needs.
    size_t arena_bytes(const std::vector<Tensor>& inputs) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

//! Cores this process may use.
int available_cores();

}  // namespace kilter
