#include "base/spelling.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kilter/base/error.h"

namespace kilter {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                              std::tolower(static_cast<unsigned char>(b[j - 1]));
            const size_t changed = diagonal + (same ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
    constexpr size_t kLongest = 64;  // no key is longer; the time stays small whatever a file holds
    if (word.size() > kLongest) return {};
    std::string_view best;
    size_t least = std::max<size_t>(1, word.size() / 3) + 1;
    for (const std::string_view candidate : candidates) {
        const size_t distance = edit_distance(word, candidate);
        if (distance < least) {
            least = distance;
            best = candidate;
        }
    }
    return best;
}

void fail_unknown(std::string_view what, std::string_view name, const std::vector<std::string>& names,
                  const std::string& where) {
    const std::vector<std::string_view> words(names.begin(), names.end());
    const std::string_view near = nearest_word(name, words);
    throw Error(fmt::format("{}{}there is no {} '{}'", where, where.empty() ? "" : ": ", what, name),
                near.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                             : fmt::format("did you mean '{}'?", near));
}

}  // namespace kilter
