// model_wise, optype_wise and op_wise of a configuration as rules for operators.
#pragma once

#include "kilter/config/config.h"

namespace kilter::config {

//! Rules of a checked `quantization` (or `mixed_precision`) section, in the order they apply. Adds to `notes` what has no effect.
std::vector<OperatorRule> operator_rules(const Settings& section, std::vector<std::string>& notes);

//! Floating-point types by their names; those kilter does not have are left out, with a note.
std::vector<Precision> precisions(const Settings& list, std::vector<std::string>& notes);

}  // namespace kilter::config
