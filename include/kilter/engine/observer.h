// Observer: sees every float32 value a run computes (and, when it wants, every 8-bit one), where it lies and in the
// layout the engine gave it.
// Calibration is one; comparing two programs operator by operator is another.
#pragma once

#include <span>
#include <string_view>

#include "kilter/graph/graph.h"

namespace kilter {

struct Observation {
    std::string_view name;           // of the value in Program::graph()
    const Node* producer = nullptr;  // null for inputs of the graph
    const float* data = nullptr;     // element (0, 0, …)
    std::span<const int64_t> shape;  // as the graph sees the value; of the slice, when a batch runs in slices
    std::span<const int64_t>
        strides;               // in elements, one per dimension: channels-last shows here, nowhere else
    DType dtype = DType::f32;  // u8 or i8: `data` is null and the elements are here
    const void* integers = nullptr;
};

class Observer {
  public:
    virtual ~Observer() = default;
    //! Called once for every input and every result of an operator, right after it is computed and before anything that
    //! reads it runs; several threads may call at once when a batch runs in slices. The data is valid during the call.
    //! Throwing ends the run. Constants, and values inside the bodies of If, Loop and Scan, are not shown.
    virtual void observe(const Observation& observation) = 0;
    //! Also shown values of u8 and i8?
    virtual bool sees_integers() const { return false; }
};

}  // namespace kilter
