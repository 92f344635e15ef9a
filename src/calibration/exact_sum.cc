#include "kilter/calibration/exact_sum.h"

#include <bit>
#include <cmath>

namespace kilter {
namespace {

constexpr int kUnit = -149;  // exponent of the smallest float32

}  // namespace

void ExactSum::add_at(size_t word, uint64_t amount) {
    for (; word < kWords && amount != 0; ++word) {
        const uint64_t before = words_[word];
        words_[word] = before + amount;
        amount = words_[word] < before ? 1 : 0;
    }
}

void ExactSum::subtract_at(size_t word, uint64_t amount) {
    for (; word < kWords && amount != 0; ++word) {
        const uint64_t before = words_[word];
        words_[word] = before - amount;
        amount = words_[word] > before ? 1 : 0;
    }
}

void ExactSum::add(double term) {
    const auto bits = std::bit_cast<uint64_t>(term);
    const auto exponent = static_cast<int>((bits >> 52) & 0x7FF);
    if (exponent == 0) return;  // zero: a denormal double is no multiple of the unit
    auto mantissa = static_cast<int64_t>((bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52));
    int place = exponent - 1075 - kUnit;  // of the mantissa's last bit
    if (place < 0) {
        mantissa >>= -place;  // only zeros fall off: the term is a multiple of the unit
        place = 0;
    }
    if (bits >> 63 != 0) mantissa = -mantissa;
    const auto word = static_cast<size_t>(place / 64);
    const auto wide = static_cast<unsigned __int128>(static_cast<__int128>(mantissa)) << (place % 64);
    const auto before = (static_cast<unsigned __int128>(words_[word + 1]) << 64) | words_[word];
    const unsigned __int128 after = before + wide;
    words_[word] = static_cast<uint64_t>(after);
    words_[word + 1] = static_cast<uint64_t>(after >> 64);
    // Carry and sign cancel unless the sum changed its sign around here.
    const int carry = (after < before ? 1 : 0) - (mantissa < 0 ? 1 : 0);
    if (carry > 0) add_at(word + 2, 1);
    if (carry < 0) subtract_at(word + 2, 1);
}

void ExactSum::add(const ExactSum& other) {
    for (size_t word = 0; word < kWords; ++word) add_at(word, other.words_[word]);
}

double ExactSum::value() const {
    ExactSum magnitude = *this;
    const bool negative = words_.back() >> 63 != 0;
    if (negative) {
        magnitude = {};
        for (size_t word = 0; word < kWords; ++word) magnitude.subtract_at(word, words_[word]);
    }
    int top = kWords - 1;
    while (top >= 0 && magnitude.words_[static_cast<size_t>(top)] == 0) --top;
    if (top < 0) return 0;
    // The leading 64 bits; a last bit that says whether anything follows makes the rounding to double correct.
    const auto at = static_cast<size_t>(top);
    const int space = std::countl_zero(magnitude.words_[at]);
    uint64_t leading = magnitude.words_[at] << space;
    bool rest = false;
    if (at > 0) {
        if (space > 0) {
            leading |= magnitude.words_[at - 1] >> (64 - space);
            rest = magnitude.words_[at - 1] << space != 0;
        } else {
            rest = magnitude.words_[at - 1] != 0;
        }
        for (size_t word = 0; word + 1 < at; ++word) rest = rest || magnitude.words_[word] != 0;
    }
    if (rest) leading |= 1;
    const double value = std::ldexp(static_cast<double>(leading), top * 64 - space + kUnit);
    return negative ? -value : value;
}

ExactSum ExactSum::from_words(const std::array<uint64_t, kWords>& words) {
    ExactSum sum;
    sum.words_ = words;
    return sum;
}

}  // namespace kilter
