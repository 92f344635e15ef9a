// Sequences of tokens as BERT-like models take them, by the names of their inputs.
#pragma once

#include "data/dataset_table.h"
#include "data/wordpiece.h"

namespace kilter {

struct TextSequence {
    std::vector<int32_t> ids, types;  // without padding
};

//! [CLS] first [SEP], and then second [SEP] when there is one; the tokens of the second part are of type 1.
TextSequence join(const WordPiece& pieces, std::span<const Token> first, std::span<const Token> second);

//! Two texts (the second may be empty) as a sequence of at most `length` tokens: the longer one loses tokens at its end.
TextSequence encode(const WordPiece& pieces, std::string_view first, std::string_view second, int64_t length);

//! Which inputs of a model take what, and how long sequences are.
class TextInputs {
  public:
    //! Without inputs, samples hold ids, mask and types as i64. `length` 0: what the inputs say, or `otherwise`.
    //! Throws Error when an input is none of these.
    TextInputs(Ports inputs, int64_t length, int64_t otherwise);

    int64_t length() const { return length_; }
    std::vector<Tensor> inputs(const TextSequence& sequence, int32_t pad, int64_t index) const;

  private:
    enum class Role { ids, mask, types, unique_id };
    struct Input {
        Role role;
        DType dtype;
    };
    std::vector<Input> inputs_;
    int64_t length_;
};

//! The vocabulary that the settings vocab_file, or model_name_or_path with a file vocab.txt, and do_lower_case name.
WordPiece open_vocabulary(const Settings& settings);

}  // namespace kilter
