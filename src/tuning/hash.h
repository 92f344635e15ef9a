// Hash: a 64-bit fingerprint of bytes, the same on every machine; for telling changed data apart, not against forgery.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace kilter {

class Hash {
  public:
    void add(uint64_t word) {
        state_ = (state_ ^ word) * 0x9e3779b97f4a7c15ULL;
        state_ ^= state_ >> 29;
    }
    void add(std::span<const std::byte> bytes) {
        size_t i = 0;
        for (; i + 8 <= bytes.size(); i += 8) {
            uint64_t word = 0;
            std::memcpy(&word, bytes.data() + i, 8);
            add(word);
        }
        uint64_t rest = 0;
        if (i < bytes.size()) std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
        add(rest ^ (static_cast<uint64_t>(bytes.size()) << 56));
        add(static_cast<uint64_t>(bytes.size()));
    }
    void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
    uint64_t value() const {
        const uint64_t mixed = (state_ ^ (state_ >> 32)) * 0xd6e8feb86659fd93ULL;
        return mixed ^ (mixed >> 32);
    }

  private:
    uint64_t state_ = 0x243f6a8885a308d3ULL;
};

}  // namespace kilter
