// Between Python's arrays and tensors: memory is shared both ways, every array comes with the name of its element type.
#pragma once

#include <nanobind/nanobind.h>

#include "kilter/data/sample.h"
#include "kilter/engine/program.h"

namespace kilter::python {

namespace nb = nanobind;

//! Every input is (array, element type), (strings, shape, "string"), (inputs, "sequence") or (None, "nothing").
//! The tensors read the arrays' memory and keep them alive. Types below a byte come as bytes.
std::vector<Tensor> to_tensors(const nb::list& inputs);
//! The same with memory of their own: for what is read later, when a loader may have filled its arrays anew.
std::vector<Tensor> to_own_tensors(const nb::list& inputs);
//! One for each sample: {name: array}, arrays as above.
std::vector<Label> to_labels(const nb::list& labels);
std::vector<Label> to_own_labels(const nb::list& labels);
//! The same forms back: an array owns its tensor, strings are bytes.
nb::tuple to_python(Tensor tensor);
//! (name, element type, shape); the shape is None when even the rank is open, its entries numbers, names or None.
nb::list describe(const std::vector<Port>& ports);

}  // namespace kilter::python
