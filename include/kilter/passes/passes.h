// Rewrites of a graph. Every pass keeps the function of the graph and is idempotent; it returns whether it changed anything.
// The order in which `optimize` runs them is the list in src/passes/pass_manager.cc.
#pragma once

#include <span>
#include <string_view>

#include "kilter/graph/graph.h"

namespace kilter {

using PassFunction = bool (*)(Graph&);

struct Pass {
    std::string_view name;
    PassFunction run;
    std::string_view summary;
};

//! All passes of `optimize`, in order.
std::span<const Pass> passes();

//! Brings a model to canonical operator forms: functions inlined, opset raised to kCanonicalOpset. Not a Pass: it needs the model.
void canonicalize(Model& model);

//! Runs all passes until nothing changes (with a bound on rounds), then sorts and infers types.
void optimize(Graph& graph);

//! The opposite of fusing: kilter's own operators, and those of the newest opsets, become standard ones that every runtime
//! knows. For files; not one of passes().
bool expand_fused(Graph& graph);

}  // namespace kilter
