// Comparison: where two programs drift apart. Both run on the same inputs; what operators of both compute is compared,
// integers as the numbers they stand for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kilter/engine/program.h"

namespace kilter {

//! How far the second program's result of one operator, or one output of the model, is from the first one's.
struct Drift {
    std::string name;       // operator, as the first program calls it; or output of the model
    std::string op;         // type of the operator in the second program; empty for an output
    double snr_db = 0;      // 10·log10(signal / noise); infinite when both are equal
    double max_error = 0;   // largest difference of two elements
    double max_signal = 0;  // largest magnitude of the first program's elements
};

//! What each operator computed in one run, as f32 and in the order of the graph; integers as the numbers they stand for. Of batches
//! that the engine cuts into slices nothing is known; with one sample at a time there are none.
std::vector<std::pair<std::string, Tensor>> operator_results(const Program& program,
                                                             const std::vector<Tensor>& inputs);

class Comparison {
  public:
    //! Both must take the same inputs and give the same outputs, by name. Throws Error when they do not.
    Comparison(const Program& a, const Program& b);
    ~Comparison();
    Comparison(const Comparison&) = delete;
    Comparison& operator=(const Comparison&) = delete;

    //! Runs both on inputs in the order of the first program's. Operators of batches that the engine cuts into slices
    //! cannot be matched; with one sample at a time there are none.
    void add(const std::vector<Tensor>& inputs);

    //! Operators that both programs have, worst first.
    std::vector<Drift> operators() const;
    //! Outputs of the model, in its order.
    std::vector<Drift> outputs() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace kilter
