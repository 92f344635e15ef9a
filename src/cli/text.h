// Numbers and tables as the commands print them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kilter::cli {

//! 79858 → "79.9 k", 4089000000 → "4.09 G": three digits and a unit.
std::string short_number(double value);
std::string short_bytes(double bytes);

//! Columns two spaces apart, as wide as their widest cell; `right` lists the columns that align to the right.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& right,
                  const std::string& indent = "  ");

//! One line on a terminal that is written over again and again; nothing when standard error is not a terminal.
class ProgressLine {
  public:
    ProgressLine();
    ~ProgressLine();  // wipes the line
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(const std::string& text);
    void clear();

  private:
    bool terminal_;
    bool shown_ = false;
};

}  // namespace kilter::cli
