// What long work shows on a terminal.
#pragma once

#include <string>

namespace kilter::cli {

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
