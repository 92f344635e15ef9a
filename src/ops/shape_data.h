// Arithmetic on shape data: the contents of small integer tensors whose entries may be symbolic dimensions.
// A Dim holds sizes only, so a negative number travels as a symbol that is its numeral ("-1").
#pragma once

#include <functional>
#include <optional>

#include "ops/op.h"

namespace kilter {

//! Longer vectors are never shapes.
inline constexpr size_t kMaxShapeData = 64;

Dim data_entry(int64_t number);
//! A dimension as an entry; a symbol that reads like a negative number is forgotten.
Dim data_entry(const Dim& dim);
std::optional<int64_t> entry_number(const Dim& entry);

//! Output 0 is `function` of the entries of inputs 0 and 1, with broadcasting; nothing when either is
//! unknown or output 0 is no vector.
void fold_shape_data(InferContext& context, const std::function<Dim(const Dim&, const Dim&)>& function);
//! The same entries on output 0 as on `input`.
void pass_shape_data(InferContext& context, size_t input = 0);

//! The dimension d with numerator = denominator · d, where symbols cancel; a product of several has a name like
//! "32 · batch". Nothing when it cannot be said.
//! Throws when the numbers alone rule it out.
std::optional<Dim> dim_quotient(const Dims& numerator, const Dims& denominator);

}  // namespace kilter
