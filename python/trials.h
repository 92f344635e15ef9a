// Trials and outcomes as Python sees them: dicts that python/kilter/tuning.py turns into its classes.
#pragma once

#include <nanobind/nanobind.h>

#include "kilter/tuning/search.h"

namespace kilter::python {

namespace nb = nanobind;

nb::dict to_dict(const Outcome& outcome);
//! `summary` is what the candidate is made of.
nb::dict to_dict(const Trial& trial, const std::string& summary);

}  // namespace kilter::python
