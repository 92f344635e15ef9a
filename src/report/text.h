// Numbers and tables as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kilter {

//! 79858 → "79.9 k", 4089000000 → "4.09 G": three digits and a unit.
std::string short_number(double value);
std::string short_bytes(double bytes);

//! Columns two spaces apart, as wide as their widest cell; `right` lists the columns that align to the right.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& right,
                  const std::string& indent = "  ");

}  // namespace kilter
