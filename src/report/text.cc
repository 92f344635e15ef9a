#include "report/text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kilter {
namespace {

std::string with_unit(double value, std::initializer_list<const char*> units) {
    auto unit = units.begin();
    while (std::fabs(value) >= 999.5 && unit + 1 != units.end()) {
        value /= 1000;
        ++unit;
    }
    const bool whole = unit == units.begin() && value == std::floor(value);
    const int decimals = whole ? 0 : std::fabs(value) < 9.995 ? 2 : std::fabs(value) < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f}{}", value, decimals, *unit);
}

// Bytes that start a character: names may hold any UTF-8.
size_t width(const std::string& text) {
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string short_number(double value) { return with_unit(value, {"", " k", " M", " G", " T"}); }
std::string short_bytes(double bytes) { return with_unit(bytes, {" B", " kB", " MB", " GB", " TB"}); }

std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& right,
                  const std::string& indent) {
    std::vector<size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line = indent;
        for (size_t i = 0; i < row.size(); ++i) {
            const std::string pad(widths[i] - width(row[i]), ' ');
            if (i > 0) line += "  ";
            line += std::ranges::find(right, i) != right.end() ? pad + row[i] : row[i] + pad;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

}  // namespace kilter
