// SQuAD: questions about paragraphs. A sample is one window of a paragraph together with a question.
#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "data/text_inputs.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Paragraph {
    std::string text;
    std::vector<Token> tokens;
};

struct Question {
    std::string id;
    std::vector<std::string> answers;
    std::vector<Token> tokens;
    size_t paragraph = 0;
};

// Tokens first … first + count - 1 of the paragraph.
struct Window {
    size_t question = 0, first = 0, count = 0;
};

class Squad : public Dataset {
  public:
    Squad(const fs::path& path, const Settings& settings, Ports inputs)
        : where_(path.string()),
          pieces_(open_vocabulary(settings)),
          inputs_(inputs, settings.get("max_seq_length", 0), 384),
          longest_query_(static_cast<size_t>(std::max<int64_t>(settings.get("max_query_length", 64), 0))),
          stride_(static_cast<size_t>(settings.get("doc_stride", 128))) {
        require(stride_ > 0 && stride_ < (1 << 20), "doc_stride must be positive");
        // A short sequence keeps room for a token of the paragraph.
        longest_query_ = std::min(longest_query_, static_cast<size_t>(inputs_.length()) - 4);
        read(path);
        for (size_t i = 0; i < questions_.size(); ++i) add_windows(i);
        require(!windows_.empty(), "{}: there are no questions", where_);
    }

    int64_t size() const override { return static_cast<int64_t>(windows_.size()); }

    Sample sample(int64_t index) const override {
        const Window& window = windows_.at(static_cast<size_t>(index));
        const Question& question = questions_[window.question];
        const Paragraph& paragraph = paragraphs_[question.paragraph];
        const std::span<const Token> tokens(paragraph.tokens.data() + window.first, window.count);

        Sample sample;
        sample.inputs = inputs_.inputs(join(pieces_, question.tokens, tokens), pieces_.pad(), index);
        const auto length = static_cast<size_t>(inputs_.length());
        std::vector<int64_t> begins(length, -1);
        std::vector<int64_t> ends(length, -1);
        Tensor best(DType::boolean, {inputs_.length()});
        std::memset(best.raw_mutable(), 0, best.bytes());
        const size_t offset = question.tokens.size() + 2;
        for (size_t i = 0; i < tokens.size(); ++i) {
            begins[offset + i] = tokens[i].begin;
            ends[offset + i] = tokens[i].end;
            best.as_mutable<bool>()[offset + i] = has_most_context(window, window.first + i);
        }
        sample.label["id"] = Tensor::strings({}, {question.id});
        sample.label["answers"] =
            Tensor::strings({static_cast<int64_t>(question.answers.size())}, question.answers);
        sample.label["context"] = Tensor::strings({}, {paragraph.text});
        sample.label["token_start"] = Tensor::of<int64_t>({inputs_.length()}, begins);
        sample.label["token_end"] = Tensor::of<int64_t>({inputs_.length()}, ends);
        sample.label["max_context"] = std::move(best);
        sample.name = fmt::format("{}: question {}, token {}", where_, question.id, window.first);
        return sample;
    }

  private:
    void read(const fs::path& path) {
        const auto file = MappedFile::open(path);
        const auto* text = reinterpret_cast<const char*>(file->bytes().data());
        try {
            const Json root = Json::parse(text, text + file->bytes().size());
            for (const Json& article : root.at("data"))
                for (const Json& entry : article.at("paragraphs")) read_paragraph(entry);
        } catch (const Json::exception& error) {
            fail("{}: not a SQuAD file: {}", where_, error.what());
        }
    }

    void read_paragraph(const Json& entry) {
        Paragraph paragraph{entry.at("context").get<std::string>(), {}};
        paragraph.tokens = pieces_.tokens(paragraph.text);
        for (const Json& item : entry.at("qas")) {
            Question question;
            const Json& id = item.at("id");
            question.id = id.is_string() ? id.get<std::string>() : id.dump();
            question.tokens = pieces_.tokens(item.at("question").get<std::string>());
            if (question.tokens.size() > longest_query_) question.tokens.resize(longest_query_);
            if (item.contains("answers"))
                for (const Json& answer : item.at("answers")) question.answers.push_back(answer.at("text"));
            question.paragraph = paragraphs_.size();
            questions_.push_back(std::move(question));
        }
        paragraphs_.push_back(std::move(paragraph));
    }

    void add_windows(size_t index) {
        const Question& question = questions_[index];
        const size_t total = paragraphs_[question.paragraph].tokens.size();
        const size_t room = static_cast<size_t>(inputs_.length()) - question.tokens.size() - 3;
        first_window_.push_back(windows_.size());
        for (size_t first = 0; first < total; first += std::min(stride_, room)) {
            const size_t count = std::min(room, total - first);
            windows_.push_back({index, first, count});
            if (first + count == total) break;
        }
    }

    // Overlapping windows see a token with more or less around it; only the one that sees most may start an answer there.
    bool has_most_context(const Window& window, size_t token) const {
        const auto score = [&](const Window& other) {
            const size_t left = token - other.first;
            const size_t right = other.first + other.count - 1 - token;
            return static_cast<double>(std::min(left, right)) + 0.01 * static_cast<double>(other.count);
        };
        const double own = score(window);
        for (size_t i = first_window_[window.question];
             i < windows_.size() && windows_[i].question == window.question; ++i) {
            const Window& other = windows_[i];
            if (token < other.first || token >= other.first + other.count) continue;
            // Of equals the first one counts.
            if (score(other) > own || (score(other) == own && other.first < window.first)) return false;
        }
        return true;
    }

    std::string where_;
    WordPiece pieces_;
    TextInputs inputs_;
    size_t longest_query_, stride_;
    std::vector<Paragraph> paragraphs_;
    std::vector<Question> questions_;
    std::vector<Window> windows_;
    std::vector<size_t> first_window_;  // of every question
};

}  // namespace

DatasetPointer make_squad(const Settings& settings, Ports inputs) {
    settings.allow_keys({"root", "label_file", "vocab_file", "model_name_or_path", "do_lower_case",
                         "max_seq_length", "max_query_length", "doc_stride"});
    return std::make_unique<Squad>(
        existing_path(settings, settings.has("label_file") ? "label_file" : "root"), settings, inputs);
}

}  // namespace kilter
