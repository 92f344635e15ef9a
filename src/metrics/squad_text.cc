#include "metrics/squad_text.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "metrics/unicode.h"

namespace kilter::metrics {
namespace {

// Only ASCII punctuation goes, as in the official script.
bool is_stripped(int32_t point) {
    return (point >= '!' && point <= '/') || (point >= ':' && point <= '@') ||
           (point >= '[' && point <= '`') || (point >= '{' && point <= '~');
}

// Articles are whole runs of word characters, wherever they stand: "the€" has one.
Points without_articles(const Points& points) {
    Points result;
    for (size_t begin = 0; begin < points.size();) {
        size_t end = begin;
        while (end < points.size() && is_word(points[end])) ++end;
        if (end == begin) {
            result.push_back(points[begin++]);
            continue;
        }
        const Points run(points.begin() + static_cast<ptrdiff_t>(begin),
                         points.begin() + static_cast<ptrdiff_t>(end));
        if (run == Points{'a'} || run == Points{'a', 'n'} || run == Points{'t', 'h', 'e'})
            result.push_back(' ');
        else
            result.insert(result.end(), run.begin(), run.end());
        begin = end;
    }
    return result;
}

}  // namespace

std::vector<std::string> answer_words(std::string_view answer) {
    Points points;
    for (const int32_t point : decode(answer))
        if (!is_stripped(point)) points.push_back(lower(point));
    return split(without_articles(points));
}

double answer_f1(std::string_view said, std::string_view truth) {
    const std::vector<std::string> a = answer_words(said), b = answer_words(truth);
    std::map<std::string_view, int64_t> bag;
    for (const std::string& word : a) ++bag[word];
    int64_t common = 0;
    for (const std::string& word : b)
        if (bag[word]-- > 0) ++common;
    return common == 0 ? 0 : 2.0 * static_cast<double>(common) / static_cast<double>(a.size() + b.size());
}

double answer_match(std::string_view said, std::string_view truth) {
    return answer_words(said) == answer_words(truth) ? 1 : 0;
}

}  // namespace kilter::metrics
