// How often each class was said and was true, and the figures that follow from that.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kilter::metrics {

struct ClassCounts {
    int64_t hits = 0;    // said and true
    int64_t false_ = 0;  // said, but not true
    int64_t missed = 0;  // true, but not said
    //! 0 when the class was neither said nor true.
    double f1() const;
};

class Counts {
  public:
    void clear() { classes_.clear(); }
    //! One answer of a sample with one class.
    void add(int64_t said, int64_t truth);
    //! One answer to the question whether a sample has a label.
    void add_label(int64_t label, bool said, bool truth);

    const std::map<int64_t, ClassCounts>& classes() const { return classes_; }
    //! `average` is macro (mean over classes), micro (over all answers) or weighted (by how often a class is true).
    double f1(const std::string& average) const;

  private:
    std::map<int64_t, ClassCounts> classes_;
};

}  // namespace kilter::metrics
