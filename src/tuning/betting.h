// Betting: tells as early as the data allow that the mean of a finite set of numbers exceeds a limit, having seen some of them in
// random order. Valid whenever one looks: the chance of ever being wrong is 1 in `doubt`.
#pragma once

#include <cstdint>

namespace kilter {

//! A gambler bets, before each number in [0, 1] is shown, that it will be larger than the mean of those not yet shown would be if
//! the mean of all were `limit`. If it is, his capital cannot be expected to grow; that it becomes `doubt` times what he
//! started with has a chance of at most 1 in `doubt` (Ville's inequality; without replacement: Waudby-Smith and Ramdas).
class Betting {
  public:
    Betting(int64_t count, double limit, double doubt) : count_(count), limit_(limit), doubt_(doubt) {}

    //! Shows the next number. True once the mean of all must be taken to exceed the limit.
    bool add(double value);
    bool exceeded() const { return exceeded_; }

  private:
    int64_t count_, seen_ = 0;
    double limit_, doubt_;
    double sum_ = 0, squares_ = 0;
    double log_capital_ = 0;
    bool exceeded_ = false;
};

}  // namespace kilter
