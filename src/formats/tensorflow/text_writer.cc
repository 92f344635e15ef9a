// GraphDef to text, as protobuf's own printer writes it.
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/fail.h"
#include "formats/protobuf/fields.h"
#include "formats/tensorflow/text_format.h"
#include "formats/tensorflow/text_schema.h"
#include "formats/tensorflow/tf_type.h"

namespace kilter::tensorflow {
namespace {

using protobuf::Fields;

constexpr int kMaxPrintDepth = 100;

void append_quoted(std::string& out, std::string_view bytes) {
    out += '"';
    for (const char c : bytes) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else if (c == '"' || c == '\'' || c == '\\')
            (out += '\\') += c;
        else if (code >= 0x20 && code < 0x7F)
            out += c;
        else
            out += fmt::format("\\{:03o}", code);
    }
    out += '"';
}

template <class T>
void append_reals(std::vector<std::string>& values, std::string_view run) {
    for (size_t i = 0; i + sizeof(T) <= run.size(); i += sizeof(T)) {
        T number{};
        std::memcpy(&number, run.data() + i, sizeof number);
        values.push_back(std::isnan(number) ? "nan" : fmt::format("{}", number));
    }
}

std::string number_text(TextKind kind, int64_t number) {
    if (kind == TextKind::boolean) return number != 0 ? "true" : "false";
    if (kind == TextKind::unsigned_integer) return std::to_string(static_cast<uint64_t>(number));
    if (kind == TextKind::type && !text_name({number}).empty()) return text_name({number});
    if (kind == TextKind::full_type && !full_type_name(number).empty())
        return std::string(full_type_name(number));
    return std::to_string(number);
}

void print_message(std::string& out, std::string_view bytes, const TextMessage& message, int depth) {
    require(depth <= kMaxPrintDepth, "messages are nested more than {} deep", kMaxPrintDepth);
    const std::string indent(static_cast<size_t>(2 * depth), ' ');
    for (Fields fields(bytes); fields.next();) {
        const TextField* field = message.find(fields.number());
        if (field == nullptr) {
            fields.skip();
            continue;
        }
        std::vector<std::string> values;
        switch (field->kind) {
            case TextKind::message:
                out += fmt::format("{}{} {{\n", indent, field->name);
                print_message(out, fields.view(), *field->message, depth + 1);
                out += indent + "}\n";
                continue;
            case TextKind::text:
                out += fmt::format("{}{}: ", indent, field->name);
                append_quoted(out, fields.view());
                out += '\n';
                continue;
            case TextKind::real:
                append_reals<float>(values, fields.fixed(sizeof(float)));
                break;
            case TextKind::wide_real:
                append_reals<double>(values, fields.fixed(sizeof(double)));
                break;
            default: {
                std::vector<int64_t> numbers;
                fields.append_integers(numbers);
                for (const int64_t number : numbers) values.push_back(number_text(field->kind, number));
            }
        }
        for (const std::string& value : values) out += fmt::format("{}{}: {}\n", indent, field->name, value);
    }
}

}  // namespace

std::string graph_def_to_text(std::string_view serialized) {
    std::string text;
    print_message(text, serialized, graph_def_schema(), 0);
    return text;
}

}  // namespace kilter::tensorflow
