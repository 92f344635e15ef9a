#include "data/text_inputs.h"

#include <algorithm>

#include "base/convert.h"
#include "base/fail.h"

namespace kilter {

namespace fs = std::filesystem;

TextSequence join(const WordPiece& pieces, std::span<const Token> first, std::span<const Token> second) {
    TextSequence sequence;
    const auto add = [&](int32_t id, int32_t type) {
        sequence.ids.push_back(id);
        sequence.types.push_back(type);
    };
    add(pieces.cls(), 0);
    for (const Token& token : first) add(token.id, 0);
    add(pieces.sep(), 0);
    if (second.empty()) return sequence;
    for (const Token& token : second) add(token.id, 1);
    add(pieces.sep(), 1);
    return sequence;
}

TextSequence encode(const WordPiece& pieces, std::string_view first, std::string_view second,
                    int64_t length) {
    std::vector<Token> a = pieces.tokens(first);
    std::vector<Token> b = pieces.tokens(second);
    const auto room = static_cast<size_t>(length) - (b.empty() ? 2 : 3);
    while (a.size() + b.size() > room) (a.size() > b.size() ? a : b).pop_back();
    return join(pieces, a, b);
}

TextInputs::TextInputs(Ports inputs, int64_t length, int64_t otherwise) : length_(length) {
    if (inputs.empty())
        inputs_ = {{Role::ids, DType::i64}, {Role::mask, DType::i64}, {Role::types, DType::i64}};
    for (const Port& port : inputs) {
        const auto holds = [&](std::string_view word) { return port.name.find(word) != std::string::npos; };
        Role role = Role::ids;
        if (holds("unique_id"))
            role = Role::unique_id;
        else if (holds("mask"))
            role = Role::mask;
        else if (holds("token_type") || holds("segment"))
            role = Role::types;
        else if (!holds("input_ids") && inputs.size() > 1)
            throw Error(fmt::format("cannot tell what input '{}' takes", port.name),
                        "texts feed input_ids, attention_mask or input_mask, token_type_ids or segment_ids");
        require(is_integer(port.type.dtype) || is_float(port.type.dtype),
                "input '{}' is {}, tokens are numbers", port.name, to_string(port.type));
        inputs_.push_back({role, port.type.dtype});
        if (role == Role::unique_id || !port.type.shape) continue;
        const Dims& dims = *port.type.shape;
        require(dims.size() == 2, "input '{}' is {}, expected batch x sequence", port.name,
                to_string(port.type));
        if (!dims[1].known()) continue;
        if (length_ == 0) length_ = dims[1].value;
        require(dims[1].value == length_, "input '{}' is {}, max_seq_length asks for {}", port.name,
                to_string(port.type), length_);
    }
    if (length_ == 0) length_ = otherwise;
    require(length_ >= 8 && length_ <= (1 << 20), "max_seq_length {} is out of range: expected 8 or more",
            length_);
}

std::vector<Tensor> TextInputs::inputs(const TextSequence& sequence, int32_t pad, int64_t index) const {
    constexpr int64_t kFirstUniqueId = 1'000'000'000;
    std::vector<Tensor> tensors;
    const size_t used = sequence.ids.size();
    for (const Input& input : inputs_) {
        if (input.role == Role::unique_id) {
            tensors.push_back(Tensor::scalar<int64_t>(kFirstUniqueId + index).converted(input.dtype));
            continue;
        }
        std::vector<int64_t> values(static_cast<size_t>(length_), input.role == Role::ids ? pad : 0);
        for (size_t i = 0; i < used; ++i)
            values[i] = input.role == Role::ids    ? sequence.ids[i]
                        : input.role == Role::mask ? 1
                                                   : sequence.types[i];
        tensors.push_back(Tensor::of<int64_t>({length_}, values).converted(input.dtype));
    }
    return tensors;
}

WordPiece open_vocabulary(const Settings& settings) {
    const bool lower_case = settings.get("do_lower_case", true);
    if (settings.has("vocab_file")) return {existing_path(settings, "vocab_file"), lower_case};
    std::error_code error;
    if (settings.has("model_name_or_path")) {
        const fs::path file = fs::path(settings.get("model_name_or_path").as_text()) / "vocab.txt";
        if (fs::exists(file, error)) return {file, lower_case};
        throw Error(fmt::format("{}: there is no such file", file.string()),
                    "kilter downloads nothing: vocab_file names the vocabulary");
    }
    throw Error("there is no vocabulary", "vocab_file names it: one piece a line");
}

}  // namespace kilter
