// ExactSum: a sum that does not depend on the order of its terms, because it never rounds.
// A fixed-point number wide enough for every sum of float32 values and for the doubles that such sums round to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kilter {

class ExactSum {
  public:
    //! `term` must be finite, a multiple of 2^-149 and less than 2^150 in magnitude: what sums of up to 2^22 float32 are.
    void add(double term);
    void add(const ExactSum& other);
    double value() const;  // rounded once

    //! Little-endian two's complement, in units of 2^-149.
    static constexpr int kWords = 5;
    const std::array<uint64_t, kWords>& words() const { return words_; }
    static ExactSum from_words(const std::array<uint64_t, kWords>& words);

    bool operator==(const ExactSum&) const = default;

  private:
    void add_at(size_t word, uint64_t amount);
    void subtract_at(size_t word, uint64_t amount);

    std::array<uint64_t, kWords> words_{};
};

}  // namespace kilter
