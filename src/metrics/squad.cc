// SquadF1: answers to questions about a text, judged as SQuAD v1.1 does, 0 to 100; `score: em` counts exact matches.
// Logits of beginnings and ends become text as BERT does it: the 20 best of each are paired, an answer lies inside the text,
// begins where its window sees most around it ("max_context"), and has at most 30 tokens; the pair with the largest sum wins,
// over all windows of a question. A question without any such pair is answered "empty".
#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "base/fail.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"
#include "metrics/squad_text.h"

namespace kilter::metrics {
namespace {

// The places of the largest logits, the earlier one first among equal ones.
std::vector<size_t> best_places(std::span<const double> logits, size_t count) {
    std::vector<size_t> places(logits.size());
    std::iota(places.begin(), places.end(), size_t{0});
    count = std::min(count, places.size());
    std::partial_sort(
        places.begin(), places.begin() + static_cast<ptrdiff_t>(count), places.end(),
        [&](size_t a, size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    places.resize(count);
    return places;
}

// One window of a text: where its tokens stand in it.
struct Window {
    std::vector<int64_t> begin, end;  // bytes of the text; -1: no token of it
    std::vector<int64_t> max_context;
    const std::string* context;
};

struct Question {
    std::vector<std::string> answers;
    std::string said = "empty";
    double score = -std::numeric_limits<double>::infinity();
};

const std::string& text_entry(const Label& label, std::string_view name, size_t sample) {
    const Tensor& entry = label_entry(label, name, sample);
    require(entry.dtype() == DType::string && entry.size() == 1, "'{}' of sample {} is no text", name,
            sample);
    return entry.as_strings()[0];
}

class Squad final : public Metric {
  public:
    explicit Squad(const Settings& settings)
        : exact_(one_of(settings, "score", {"f1", "em"}) == "em"),
          start_(settings.get("start_output", 0)),
          end_(settings.get("end_output", 1)),
          n_best_(settings.get("n_best", 20)),
          longest_(settings.get("max_answer_length", 30)) {
        settings.allow_keys({"score", "start_output", "end_output", "n_best", "max_answer_length"});
        for (const char* key : {"start_output", "end_output"})
            if (settings.get(key, 0) < 0) settings.get(key).reject("the number of an output, counted from 0");
        for (const char* key : {"n_best", "max_answer_length"})
            if (settings.get(key, 1) < 1) settings.get(key).reject("a number of at least 1");
    }

    void reset() override {
        questions_.clear();
        places_.clear();
        samples_ = 0;
    }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        if (labels.empty()) return;
        const Tensor& first = checked_output(outputs, start_, labels.size());
        if (first.dtype() == DType::string) {
            require(first.size() == static_cast<int64_t>(labels.size()),
                    "SquadF1: output {} has the shape {}, expected one answer for each sample", start_,
                    to_string(first.shape()));
            for (size_t i = 0; i < labels.size(); ++i)
                answer(labels[i], 0, first.as_strings()[i], samples_ + i);
        } else {
            update_logits(outputs, labels);
        }
        samples_ += labels.size();
    }

    double result() const override {
        require_samples(samples_);
        double sum = 0;
        for (const Question& question : questions_) {
            double best = 0;
            for (const std::string& truth : question.answers)
                best = std::max(
                    best, exact_ ? answer_match(question.said, truth) : answer_f1(question.said, truth));
            sum += best;
        }
        return 100 * sum / static_cast<double>(questions_.size());
    }

  private:
    void update_logits(const std::vector<Tensor>& outputs, std::span<const Label> labels) {
        const Rows starts(outputs, start_, labels.size(), samples_);
        // Some models put both into one output [samples, tokens, 2].
        const bool together = starts.shape().size() == 3 && starts.shape()[2] == 2;
        const Rows ends(outputs, together ? start_ : end_, labels.size(), samples_);
        require(
            starts.width() == ends.width() && (together || (starts.is_vector() && ends.is_vector())),
            "SquadF1: outputs {} and {} have the shapes {} and {}, expected logits [samples, tokens] of both",
            start_, end_, to_string(starts.shape()), to_string(ends.shape()));
        const size_t tokens = together ? starts.width() / 2 : starts.width();
        std::vector<double> begin(tokens), end(tokens);
        for (size_t i = 0; i < labels.size(); ++i) {
            for (size_t t = 0; t < tokens; ++t) {
                begin[t] = starts[i][together ? 2 * t : t];
                end[t] = ends[i][together ? 2 * t + 1 : t];
            }
            const Window window = window_of(labels[i], tokens, samples_ + i);
            answer_from(labels[i], window, begin, end, samples_ + i);
        }
    }

    static Window window_of(const Label& label, size_t tokens, size_t sample) {
        Window window;
        window.context = &text_entry(label, "context", sample);
        const auto numbers = [&](std::string_view name) {
            const Tensor& entry = label_entry(label, name, sample);
            require(entry.dtype() != DType::string && entry.size() <= static_cast<int64_t>(tokens),
                    "'{}' of sample {} has the shape {}, the output has {} tokens", name, sample,
                    to_string(entry.shape()), tokens);
            return entry.to_ints();
        };
        window.begin = numbers("token_start");
        window.end = numbers("token_end");
        require(window.begin.size() == window.end.size(),
                "sample {}: 'token_start' has {} numbers, 'token_end' has {}", sample, window.begin.size(),
                window.end.size());
        window.max_context = label.contains("max_context") ? numbers("max_context")
                                                           : std::vector<int64_t>(window.begin.size(), 1);
        require(window.max_context.size() == window.begin.size(),
                "sample {}: 'token_start' has {} numbers, 'max_context' has {}", sample, window.begin.size(),
                window.max_context.size());
        return window;
    }

    void answer_from(const Label& label, const Window& window, std::span<const double> begin,
                     std::span<const double> end, size_t sample) {
        const auto in_text = [&](size_t token) {
            return token < window.begin.size() && window.begin[token] >= 0;
        };
        std::string said = "empty";
        double best = -std::numeric_limits<double>::infinity();
        const std::vector<size_t> ends = best_places(end, static_cast<size_t>(n_best_));
        for (const size_t b : best_places(begin, static_cast<size_t>(n_best_))) {
            if (!in_text(b) || window.max_context[b] == 0) continue;
            for (const size_t e : ends) {
                if (!in_text(e) || e < b || e - b + 1 > static_cast<size_t>(longest_)) continue;
                if (begin[b] + end[e] <= best) continue;
                const int64_t from = window.begin[b], to = window.end[e];
                require(from <= to && to <= static_cast<int64_t>(window.context->size()),
                        "sample {}: tokens {} to {} stand at {} to {}, the context has {} bytes", sample, b,
                        e, from, to, window.context->size());
                best = begin[b] + end[e];
                said = window.context->substr(static_cast<size_t>(from), static_cast<size_t>(to - from));
            }
        }
        answer(label, best, said, sample);
    }

    // The answer of a window counts for its question when it is the best so far.
    void answer(const Label& label, double score, const std::string& said, size_t sample) {
        const std::string id =
            label.contains("id") ? text_entry(label, "id", sample) : fmt::format("sample {}", sample);
        const auto [place, added] = places_.try_emplace(id, questions_.size());
        if (added) {
            const Tensor& answers = label_entry(label, "answers", sample);
            require(answers.dtype() == DType::string && answers.size() > 0,
                    "'answers' of sample {} holds no text", sample);
            questions_.push_back({answers.as_strings()});
        }
        Question& question = questions_[place->second];
        if (score <= question.score) return;
        question.score = score;
        question.said = said;
    }

    bool exact_;
    int64_t start_, end_;
    int64_t n_best_, longest_;
    std::vector<Question> questions_;
    std::unordered_map<std::string, size_t> places_;  // of questions, by their id
    size_t samples_ = 0;
};

}  // namespace

Made make_squad(const Settings& settings) { return std::make_unique<Squad>(settings); }

}  // namespace kilter::metrics
