#include "cli/shapes.h"

#include <charconv>

#include <fmt/format.h>

namespace kilter::cli {

std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text) {
    // Names of tensors may hold '=' themselves; values do not.
    const size_t position = text.rfind('=');
    if (position == std::string::npos || position == 0 || position + 1 == text.size())
        throw CLI::ValidationError(option, fmt::format("expected NAME=VALUE, found '{}'", text));
    return {text.substr(0, position), text.substr(position + 1)};
}

std::pair<std::string, Shape> parse_shape(const std::string& option, const std::string& text,
                                          int64_t lowest) {
    const auto [name, value] = split_assignment(option, text);
    Shape shape;
    const char* next = value.data();
    const char* end = next + value.size();
    while (true) {
        int64_t dim = 0;
        const auto [after, error] = std::from_chars(next, end, dim);
        const bool separator = after != end && (*after == 'x' || *after == ',') && after + 1 != end;
        if (error != std::errc() || dim < lowest || (after != end && !separator))
            throw CLI::ValidationError(option, fmt::format("expected NAME=1x3x224x224, found '{}'", text));
        shape.push_back(dim);
        if (after == end) break;
        next = after + 1;
    }
    return {name, shape};
}

ShapeOptions ShapeArguments::parsed() const {
    ShapeOptions options{batch, {}};
    for (const std::string& text : shapes) {
        auto [name, shape] = parse_shape("--shape", text, 0);
        options.shapes[name] = std::move(shape);
    }
    return options;
}

void add_shape_options(CLI::App& command, ShapeArguments& arguments) {
    command.add_option("--batch", arguments.batch, "Size of an open first dimension (default 1)")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 31).description(""));
    command
        .add_option("--shape", arguments.shapes,
                    "Shape of an input, or size of a named dimension; may be repeated")
        ->type_name("NAME=1x3x224x224")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace kilter::cli
