// YAML as Settings: every value knows its file, line and key path. Hostile text ends in an Error, never in exhausted memory.
#pragma once

#include <string_view>

#include "kilter/base/settings.h"

namespace kilter {

//! Reads one YAML document. `file` only names it in errors. Plain scalars become numbers, booleans and nothing as YAML 1.1 has
//! it, and 1e-2 is a number; quoted ones stay text. Merge keys (<<) and Python's tuple tag are understood, keys must be unique.
Settings parse_yaml(std::string_view text, const std::string& file);
//! The same for a file. Throws Error that names it.
Settings read_yaml(const std::string& path);

}  // namespace kilter
