// BERT's tokens: text is cleaned, split into words at spaces and punctuation, and words into the pieces of a vocabulary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kilter {

struct Token {
    int32_t id = 0;
    int32_t begin = 0, end = 0;  // bytes of the text it came from
};

class WordPiece {
  public:
    //! One piece a line, the line's number is its id; pieces that continue a word start with "##". Throws Error when the
    //! file is not one, or lacks [PAD], [UNK], [CLS] or [SEP].
    WordPiece(const std::filesystem::path& vocabulary, bool lower_case);

    //! What is not in the vocabulary becomes [UNK]; text that is not UTF-8 is read as far as it is.
    std::vector<Token> tokens(std::string_view text) const;

    int32_t pad() const { return pad_; }
    int32_t cls() const { return cls_; }
    int32_t sep() const { return sep_; }

  private:
    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    struct Letter;
    void split(const std::vector<Letter>& word, std::vector<Token>& tokens) const;

    std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
    size_t longest_ = 0;  // bytes of the longest piece
    bool lower_case_;
    int32_t pad_ = 0, unknown_ = 0, cls_ = 0, sep_ = 0;
};

}  // namespace kilter
