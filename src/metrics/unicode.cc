#include "metrics/unicode.h"

#include <utf8proc.h>

namespace kilter::metrics {

Points decode(std::string_view text) {
    constexpr int32_t kReplacement = 0xFFFD;
    Points points;
    points.reserve(text.size());
    while (!text.empty()) {
        int32_t point = 0;
        const auto used = utf8proc_iterate(reinterpret_cast<const uint8_t*>(text.data()),
                                           static_cast<utf8proc_ssize_t>(text.size()), &point);
        points.push_back(used > 0 ? point : kReplacement);
        text.remove_prefix(used > 0 ? static_cast<size_t>(used) : 1);
    }
    return points;
}

std::string encode(const Points& points) {
    std::string text;
    for (const int32_t point : points) {
        uint8_t bytes[4];
        const auto used = utf8proc_encode_char(point, bytes);
        text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(used));
    }
    return text;
}

bool is_space(int32_t point) {
    return (point >= 9 && point <= 13) || (point >= 28 && point <= 32) || point == 0x85 || point == 0xA0 ||
           point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 || point == 0x2029 ||
           point == 0x202F || point == 0x205F || point == 0x3000;
}

bool is_word(int32_t point) {
    const utf8proc_category_t category = utf8proc_category(point);
    const bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
    const bool number = category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
    return letter || number || point == '_';
}

bool is_digit(int32_t point) { return utf8proc_category(point) == UTF8PROC_CATEGORY_ND; }

bool is_punctuation(int32_t point) {
    const utf8proc_category_t category = utf8proc_category(point);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_symbol(int32_t point) {
    const utf8proc_category_t category = utf8proc_category(point);
    return category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
}

int32_t lower(int32_t point) { return utf8proc_tolower(point); }

std::vector<std::string> split(const Points& points) {
    std::vector<std::string> words;
    Points word;
    const auto flush = [&] {
        if (!word.empty()) words.push_back(encode(word));
        word.clear();
    };
    for (const int32_t point : points) {
        if (is_space(point))
            flush();
        else
            word.push_back(point);
    }
    flush();
    return words;
}

}  // namespace kilter::metrics
