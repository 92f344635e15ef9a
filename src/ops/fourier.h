// The discrete Fourier transform of one signal, by its definition.
#pragma once

#include <complex>
#include <vector>

namespace kilter {

//! The first `bins` coefficients of the transform of `signal`, over its whole length. The inverse is
//! scaled by 1/length.
std::vector<std::complex<double>> fourier_transform(const std::vector<std::complex<double>>& signal,
                                                    size_t bins, bool inverse);

}  // namespace kilter
