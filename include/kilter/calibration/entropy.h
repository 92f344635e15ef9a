// The threshold of MXNet's entropy mode for a histogram of one's own (docs/calibration.md, "kl").
#pragma once

#include <vector>

namespace kilter {

//! `bins` of equal `width`, an odd number of them, the middle one around zero. 255 levels reach from -t to t; of what is never
//! negative 511 do, of which one half is used. Where no threshold has a divergence it is the outermost edge.
float entropy_threshold(const std::vector<double>& bins, double width, bool never_negative);

}  // namespace kilter
