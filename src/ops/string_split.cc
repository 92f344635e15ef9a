// StringSplit: the parts of every string between delimiters (or runs of white space), padded with empty
// strings to the longest list, and how many there are.
#include <algorithm>
#include <limits>

#include "base/fail.h"
#include "ops/op.h"

namespace kilter::string_split_op {

constexpr std::string_view kWhite = " \t\n\r\f\v";

std::vector<std::string> split_at_white(std::string_view text, int64_t most) {
    std::vector<std::string> parts;
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(kWhite), text.size()));
        if (text.empty()) return parts;
        if (static_cast<int64_t>(parts.size()) == most) {
            text.remove_suffix(text.size() - 1 - text.find_last_not_of(kWhite));
            parts.emplace_back(text);
            return parts;
        }
        const size_t end = std::min(text.find_first_of(kWhite), text.size());
        parts.emplace_back(text.substr(0, end));
        text.remove_prefix(end);
    }
}

std::vector<std::string> split(std::string_view text, std::string_view delimiter, int64_t most) {
    if (delimiter.empty()) return split_at_white(text, most);
    std::vector<std::string> parts;
    for (size_t end = 0; static_cast<int64_t>(parts.size()) < most;
         text.remove_prefix(end + delimiter.size())) {
        end = text.find(delimiter);
        if (end == std::string_view::npos) break;
        parts.emplace_back(text.substr(0, end));
    }
    parts.emplace_back(text);
    return parts;
}

void infer(InferContext& context) {
    if (!context.shape(0)) {
        context.set_output(0, DType::string);
        return context.set_output(1, DType::i64);
    }
    Dims parts = *context.shape(0);
    context.set_output(1, DType::i64, parts);
    parts.emplace_back();
    context.set_output(0, DType::string, std::move(parts));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    const std::string delimiter = context.attributes().get_string("delimiter");
    const int64_t most = context.attributes().get_int("maxsplit", std::numeric_limits<int64_t>::max());
    require(most >= 0, "maxsplit must not be negative, found {}", most);
    std::vector<std::vector<std::string>> all;
    size_t longest = 0;
    for (const std::string& text : x.as_strings()) {
        all.push_back(split(text, delimiter, most));
        longest = std::max(longest, all.back().size());
    }
    Shape shape = x.shape();
    shape.push_back(static_cast<int64_t>(longest));
    std::vector<std::string> parts;
    std::vector<int64_t> counts;
    for (std::vector<std::string>& own : all) {
        counts.push_back(static_cast<int64_t>(own.size()));
        own.resize(longest);
        parts.insert(parts.end(), own.begin(), own.end());
    }
    context.set_output(0, Tensor::strings(std::move(shape), std::move(parts)));
    if (context.wants_output(1)) context.set_output(1, Tensor::of<int64_t>(x.shape(), counts));
}

KILTER_OP({.name = "StringSplit",
           .max_outputs = 2,
           .attributes = {{"delimiter", AttributeKind::text}, {"maxsplit", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::string_split_op
