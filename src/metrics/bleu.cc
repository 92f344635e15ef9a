// BLEU: how many word sequences of 1 to 4 words translations share with their references, over the whole corpus, 0 to 100.
// Words are told apart as mteval does for all languages: punctuation that is not between digits and every symbol stand alone.
// A length of sequence without any match counts half, a quarter, … of one match (as in sacreBLEU).
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/fail.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"
#include "metrics/unicode.h"

namespace kilter::metrics {
namespace {

constexpr size_t kOrder = 4;
using Ngrams = std::map<std::vector<std::string>, int64_t>;

// Puts spaces around the second (`after`) or the first of two characters where one is punctuation and the other no digit.
Points spaced(const Points& text, bool after) {
    Points result;
    for (size_t i = 0; i < text.size(); ++i) {
        const bool pair = i + 1 < text.size();
        if (pair && after && !is_digit(text[i]) && is_punctuation(text[i + 1])) {
            result.insert(result.end(), {text[i], ' ', text[i + 1], ' '});
            ++i;
        } else if (pair && !after && is_punctuation(text[i]) && !is_digit(text[i + 1])) {
            result.insert(result.end(), {' ', text[i], ' ', text[i + 1]});
            ++i;
        } else {
            result.push_back(text[i]);
        }
    }
    return result;
}

std::vector<std::string> words_of(std::string_view text) {
    Points spread;
    for (const int32_t point : spaced(spaced(decode(text), true), false)) {
        if (is_symbol(point))
            spread.insert(spread.end(), {' ', point, ' '});
        else
            spread.push_back(point);
    }
    return split(spread);
}

Ngrams ngrams(const std::vector<std::string>& words, size_t order) {
    Ngrams counts;
    for (size_t i = 0; i + order <= words.size(); ++i)
        ++counts[std::vector<std::string>(words.begin() + static_cast<ptrdiff_t>(i),
                                          words.begin() + static_cast<ptrdiff_t>(i + order))];
    return counts;
}

class Bleu final : public Metric {
  public:
    explicit Bleu(const Settings& settings) : output_(output_index(settings)) {
        settings.allow_keys({"output"});
    }

    void reset() override { totals_ = {}; }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        const Tensor& output = checked_output(outputs, output_, labels.size());
        require(output.dtype() == DType::string && output.size() == static_cast<int64_t>(labels.size()),
                "BLEU: output {} has the type {} and the shape {}, expected one text for each sample",
                output_, name(output.dtype()), to_string(output.shape()));
        Totals totals = totals_;
        for (size_t i = 0; i < labels.size(); ++i) {
            const Tensor& references = label_entry(labels[i], "label", totals.samples);
            require(references.dtype() == DType::string && references.size() > 0,
                    "'label' of sample {} is no text, expected one translation or several", totals.samples);
            add(totals, output.as_strings()[i], references.as_strings());
        }
        totals_ = totals;
    }

    double result() const override {
        require_samples(totals_.samples);
        if (totals_.length == 0) return 0;
        double logs = 0, smooth = 1;
        for (size_t n = 0; n < kOrder; ++n) {
            const double possible = static_cast<double>(totals_.possible[n]);
            if (possible == 0) return 0;
            if (totals_.matches[n] == 0) smooth *= 2;
            logs += std::log(
                (totals_.matches[n] == 0 ? 1 / smooth : static_cast<double>(totals_.matches[n])) / possible);
        }
        const double length = static_cast<double>(totals_.length),
                     wanted = static_cast<double>(totals_.wanted);
        const double brevity = length >= wanted ? 1 : std::exp(1 - wanted / length);
        return 100 * brevity * std::exp(logs / kOrder);
    }

  private:
    struct Totals {
        size_t samples = 0;
        int64_t length = 0, wanted = 0;  // words of translations and of the references nearest in length
        std::array<int64_t, kOrder> matches{}, possible{};
    };

    static void add(Totals& totals, const std::string& text, const std::vector<std::string>& references) {
        const std::vector<std::string> words = words_of(text);
        const int64_t length = static_cast<int64_t>(words.size());
        std::vector<std::vector<std::string>> wanted;
        int64_t nearest = -1;
        for (const std::string& reference : references) {
            wanted.push_back(words_of(reference));
            const int64_t size = static_cast<int64_t>(wanted.back().size());
            const int64_t gap = std::abs(size - length), best = std::abs(nearest - length);
            if (nearest < 0 || gap < best || (gap == best && size < nearest)) nearest = size;
        }
        for (size_t n = 1; n <= kOrder; ++n) {
            Ngrams most;
            for (const auto& reference : wanted)
                for (const auto& [ngram, count] : ngrams(reference, n))
                    most[ngram] = std::max(most[ngram], count);
            for (const auto& [ngram, count] : ngrams(words, n)) {
                const auto found = most.find(ngram);
                if (found != most.end()) totals.matches[n - 1] += std::min(count, found->second);
            }
            totals.possible[n - 1] += std::max<int64_t>(0, length - static_cast<int64_t>(n) + 1);
        }
        totals.length += length;
        totals.wanted += nearest;
        ++totals.samples;
    }

    int64_t output_;
    Totals totals_;
};

}  // namespace

Made make_bleu(const Settings& settings) { return std::make_unique<Bleu>(settings); }

}  // namespace kilter::metrics
