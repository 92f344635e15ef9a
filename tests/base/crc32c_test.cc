#include "base/crc32c.h"

#include <string>

#include <gtest/gtest.h>

namespace kilter::crc32c_test {

uint32_t of(const std::string& text, uint32_t before = 0) {
    return crc32c(std::as_bytes(std::span(text.data(), text.size())), before);
}

// The vectors of RFC 3720, appendix B.4, and the check value of the polynomial.
TEST(Crc32c, EqualsThePublishedValues) {
    EXPECT_EQ(of(""), 0U);
    EXPECT_EQ(of("123456789"), 0xE3069283);
    EXPECT_EQ(of(std::string(32, '\0')), 0x8A9136AA);
    EXPECT_EQ(of(std::string(32, '\xFF')), 0x62A8AB43);
}

TEST(Crc32c, ContinuesAtAnyByte) {
    const std::string text = "a text that is longer than eight bytes";
    for (size_t i = 0; i <= text.size(); ++i)
        EXPECT_EQ(of(text.substr(i), of(text.substr(0, i))), of(text)) << i;
}

}  // namespace kilter::crc32c_test
