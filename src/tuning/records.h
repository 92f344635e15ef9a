// The records of a journal as JSON, and back.
#pragma once

#include <nlohmann/json.hpp>

#include "kilter/tuning/search.h"

namespace kilter {

using Record = nlohmann::ordered_json;

Record to_record(const std::vector<double>& values);
std::vector<double> numbers_from(const Record& record);
Record to_record(const Outcome& outcome);
Outcome outcome_from(const Record& record);
Record to_record(const Trial& trial, const Space& space);
Record to_record(const Recipes& recipes);
Recipes recipes_from(const Record& record);
//! JSON has no infinities: they travel as text.
Record to_record(double value);
double number_from(const Record& record);
std::string hex(uint64_t value);
uint64_t from_hex(const std::string& text);
//! One line; numbers read back as they were.
std::string line(const Record& record);
//! Throws Error when the text is no record.
Record parse_record(const std::string& text);

}  // namespace kilter
