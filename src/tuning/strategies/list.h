// The strategies kilter comes with. What each does is said in its own file and in docs/tuning.md.
#pragma once

#include "kilter/tuning/strategy.h"

namespace kilter {

std::unique_ptr<Strategy> make_auto(const Settings& settings);
std::unique_ptr<Strategy> make_basic(const Settings& settings);
std::unique_ptr<Strategy> make_mse(const Settings& settings);
std::unique_ptr<Strategy> make_mse_v2(const Settings& settings);
std::unique_ptr<Strategy> make_bayesian(const Settings& settings);
std::unique_ptr<Strategy> make_random(const Settings& settings);
std::unique_ptr<Strategy> make_exhaustive(const Settings& settings);
std::unique_ptr<Strategy> make_tpe(const Settings& settings);
std::unique_ptr<Strategy> make_conservative(const Settings& settings);

}  // namespace kilter
