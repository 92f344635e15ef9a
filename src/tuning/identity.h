// What a study is about, as fingerprints: a study that is resumed must be about the same.
#pragma once

#include "kilter/tuning/tune.h"
#include "tuning/records.h"

namespace kilter {

//! Of operators, attributes and constants; names of files do not matter.
uint64_t fingerprint(const Model& model);

//! Everything that decides the outcome of a search, but for how long it may take.
Record settings_record(const TuneOptions& options, const std::vector<Component>& metrics);

//! Throws Error that says which of model, data and settings differ between the first record of a journal and this study.
void check_same_study(const Record& recorded, const Record& now, const std::filesystem::path& workspace);

}  // namespace kilter
