#include "data/wordpiece.h"

#include <algorithm>
#include <cctype>

#include <utf8proc.h>

#include "base/fail.h"
#include "base/mapped_file.h"

namespace kilter {
namespace {

constexpr size_t kLongestWord = 100;  // characters; longer words are [UNK] as a whole

bool is_space(int32_t c) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return true;
    const utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
}

bool is_dropped(int32_t c) {
    if (c == 0 || c == 0xFFFD) return true;
    const utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CS ||
           category == UTF8PROC_CATEGORY_CO;
}

// All of ASCII that is neither letter, digit nor space counts, e.g. "$" and "^", which Unicode calls symbols.
bool is_punctuation(int32_t c) {
    if (c < 128) return c > 32 && c < 127 && !std::isalnum(c);
    const utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

// Chinese is written without spaces: every ideograph is a word. Hangul and kana are not among them.
bool is_ideograph(int32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

}  // namespace

// One character after normalization, and the bytes of the text it came from.
struct WordPiece::Letter {
    int32_t code = 0;
    int32_t begin = 0, end = 0;
};

WordPiece::WordPiece(const std::filesystem::path& vocabulary, bool lower_case) : lower_case_(lower_case) {
    const auto file = MappedFile::open(vocabulary);
    std::string_view rest(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    require(rest.size() < (size_t{1} << 28), "{}: too large for a vocabulary", vocabulary.string());
    for (int32_t id = 0; !rest.empty(); ++id) {
        const size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        ids_.emplace(line, id);
        longest_ = std::max(longest_, line.size());
    }
    for (const auto& [name, id] :
         {std::pair("[PAD]", &pad_), {"[UNK]", &unknown_}, {"[CLS]", &cls_}, {"[SEP]", &sep_}}) {
        const auto found = ids_.find(std::string_view(name));
        require(found != ids_.end(), "{}: there is no {} in the vocabulary", vocabulary.string(), name);
        *id = found->second;
    }
}

void WordPiece::split(const std::vector<Letter>& word, std::vector<Token>& tokens) const {
    if (word.empty()) return;
    const auto unknown = [&] { tokens.push_back({unknown_, word.front().begin, word.back().end}); };
    if (word.size() > kLongestWord) return unknown();
    std::string text;
    std::vector<size_t> ends{0};  // of every letter in text
    for (const Letter& letter : word) {
        utf8proc_uint8_t bytes[4];
        text.append(reinterpret_cast<const char*>(bytes),
                    static_cast<size_t>(utf8proc_encode_char(letter.code, bytes)));
        ends.push_back(text.size());
    }
    const size_t before = tokens.size();
    std::string piece;
    for (size_t first = 0; first < word.size();) {
        size_t last = word.size();
        const std::string_view prefix = first == 0 ? "" : "##";
        auto found = ids_.end();
        for (; last > first; --last) {
            if (ends[last] - ends[first] > longest_) continue;
            piece.assign(prefix).append(text, ends[first], ends[last] - ends[first]);
            found = ids_.find(std::string_view(piece));
            if (found != ids_.end()) break;
        }
        if (found == ids_.end()) {
            tokens.resize(before);
            return unknown();
        }
        tokens.push_back({found->second, word[first].begin, word[last - 1].end});
        first = last;
    }
}

std::vector<Token> WordPiece::tokens(std::string_view text) const {
    require(text.size() < (size_t{1} << 30), "a text of {} bytes is too long", text.size());
    std::vector<Token> result;
    std::vector<Letter> word;
    const auto finish = [&] {
        split(word, result);
        word.clear();
    };
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    for (size_t position = 0; position < text.size();) {
        utf8proc_int32_t code = 0;
        const utf8proc_ssize_t length =
            utf8proc_iterate(bytes + position, static_cast<utf8proc_ssize_t>(text.size() - position), &code);
        const auto begin = static_cast<int32_t>(position);
        position += length > 0 ? static_cast<size_t>(length) : 1;
        const auto end = static_cast<int32_t>(position);
        if (length <= 0) continue;
        if (is_space(code)) {
            finish();
            continue;
        }
        if (is_dropped(code)) continue;
        utf8proc_int32_t letters[16] = {code};
        utf8proc_ssize_t count = 1;
        if (lower_case_) {
            int boundary = 0;
            count =
                utf8proc_decompose_char(utf8proc_tolower(code), letters, 16, UTF8PROC_DECOMPOSE, &boundary);
            count = std::clamp<utf8proc_ssize_t>(count, 0, 16);
        }
        for (utf8proc_ssize_t i = 0; i < count; ++i) {
            const int32_t letter = letters[i];
            if (lower_case_ && utf8proc_category(letter) == UTF8PROC_CATEGORY_MN) continue;  // an accent
            const bool alone = is_punctuation(letter) || is_ideograph(letter);
            if (alone) finish();
            word.push_back({letter, begin, end});
            if (alone) finish();
        }
    }
    finish();
    return result;
}

}  // namespace kilter
