// StringNormalizer: strings without stop words, in lower or upper case. Only the letters of ASCII have a case here.
#include <algorithm>
#include <set>

#include "base/fail.h"
#include "ops/op.h"

namespace kilter::string_normalizer_op {

char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

char upper(char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

std::string mapped(std::string text, char (*change)(char)) {
    std::ranges::transform(text, text.begin(), change);
    return text;
}

void check_shape(const Dims& shape) {
    require(shape.size() == 1 || (shape.size() == 2 && (!shape[0].known() || shape[0].value == 1)),
            "expected strings of shape [C] or [1, C], found {}", to_string(shape));
}

void infer(InferContext& context) {
    if (!context.shape(0)) return context.set_output(0, DType::string);
    check_shape(*context.shape(0));
    Dims shape(context.shape(0)->size(), Dim(1));
    shape.back() = Dim();
    context.set_output(0, DType::string, std::move(shape));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    check_shape(to_dims(x.shape()));
    const Attributes& attributes = context.attributes();
    const std::string action = attributes.get_string("case_change_action", "NONE");
    require(action == "NONE" || action == "LOWER" || action == "UPPER",
            "case_change_action must be NONE, LOWER or UPPER, found '{}'", action);
    const bool sensitive = attributes.get_int("is_case_sensitive", 0) != 0;
    const auto compared = [&](const std::string& text) { return sensitive ? text : mapped(text, lower); };
    std::set<std::string> stopwords;
    for (const std::string& word : attributes.get_strings("stopwords")) stopwords.insert(compared(word));
    std::vector<std::string> kept;
    for (const std::string& text : x.as_strings()) {
        if (stopwords.contains(compared(text))) continue;
        kept.push_back(action == "LOWER"   ? mapped(text, lower)
                       : action == "UPPER" ? mapped(text, upper)
                                           : text);
    }
    if (kept.empty()) kept.emplace_back();  // never an empty tensor
    Shape shape(x.shape().size(), 1);
    shape.back() = static_cast<int64_t>(kept.size());
    context.set_output(0, Tensor::strings(std::move(shape), std::move(kept)));
}

KILTER_OP({.name = "StringNormalizer",
           .attributes = {{"case_change_action", AttributeKind::text},
                          {"is_case_sensitive", AttributeKind::integer},
                          {"locale", AttributeKind::text},
                          {"stopwords", AttributeKind::texts}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::string_normalizer_op
