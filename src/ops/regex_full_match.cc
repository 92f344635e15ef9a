// RegexFullMatch: does the whole string match the pattern? The pattern is read with the grammar of ECMAScript,
// which agrees with ONNX's (RE2) on the common constructs.
#include <regex>

#include "base/fail.h"
#include "ops/op.h"

namespace kilter::regex_full_match_op {

// The library's matcher recurses once for every character: long strings would end the process.
constexpr size_t kLongestText = 4096;

void infer(InferContext& context) {
    ValueType type;
    type.dtype = DType::boolean;
    type.shape = context.shape(0);
    context.set_output(0, std::move(type));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::string pattern = context.attributes().get_string("pattern");
    const std::vector<std::string>& texts = x.as_strings();
    Tensor& y = context.output(0, DType::boolean, x.shape());
    try {
        const std::regex expression(pattern);
        for (size_t i = 0; i < texts.size(); ++i) {
            require(texts[i].size() <= kLongestText, "a string of {} bytes is too long to match",
                    texts[i].size());
            y.as_mutable<bool>()[i] = std::regex_match(texts[i], expression);
        }
    } catch (const std::regex_error& error) {
        fail("the pattern '{}' cannot be used: {}", pattern, error.what());
    }
}

KILTER_OP({.name = "RegexFullMatch",
           .attributes = {{"pattern", AttributeKind::text, true}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::regex_full_match_op
