// Ctrl-C while something lasts: noted, and acted upon where nothing is left half done.
#pragma once

namespace kilter::cli {

//! Thrown by check(); main() ends with the status that shells give to interrupted programs.
struct Interrupted {};

//! While it lives the first Ctrl-C only sets a mark; the second one ends the program as usual.
class InterruptScope {
  public:
    InterruptScope();
    ~InterruptScope();
    InterruptScope(const InterruptScope&) = delete;
    InterruptScope& operator=(const InterruptScope&) = delete;
    //! Throws Interrupted when the mark is set.
    static void check();
};

}  // namespace kilter::cli
