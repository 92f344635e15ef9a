// Random numbers that are the same on every machine: a function of a seed and a stream (a sample's index), nothing else.
#pragma once

#include <cstdint>

namespace kilter {

class Random {
  public:
    explicit Random(uint64_t seed, uint64_t stream = 0) : state_(mix(seed) ^ mix(~stream)) {}

    uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15); }
    //! Uniform in [0, 1).
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    //! Uniform in 0 … count - 1; the bias is below count / 2^64.
    int64_t below(int64_t count) {
        return static_cast<int64_t>((static_cast<unsigned __int128>(next()) * static_cast<uint64_t>(count)) >>
                                    64);
    }

  private:
    // The finalizer of SplitMix64.
    static uint64_t mix(uint64_t x) {
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
        return x ^ (x >> 31);
    }

    uint64_t state_;
};

}  // namespace kilter
