// What all studies have in common, whoever evaluates their candidates: the journal, the way of a search, its summary.
#pragma once

#include <functional>
#include <memory>

#include "kilter/tuning/strategy.h"
#include "kilter/tuning/tune.h"
#include "tuning/journal.h"
#include "tuning/records.h"

namespace kilter {

//! The journal of the workspace, begun with `study` or resumed; null without a workspace. Who starts in a folder without `resume` must find
//! no study there. Throws Error.
std::unique_ptr<Journal> open_study(const TuneOptions& options, const Record& study);

//! Lets the strategy search and says what it found. `finish` adds what only the backend knows, while the search is still there.
StudyResult run_study(Backend& backend, Journal* journal, Strategy& strategy, const TuneOptions& options,
                      const std::function<void(const Search&, StudyResult&)>& finish);

//! Why a search left operator `index` in floating point, as far as it measured that.
std::string why_spared(const Search& search, size_t index);

}  // namespace kilter
