// The options --batch and --shape, which several commands share.
#pragma once

#include <CLI/CLI.hpp>

#include "kilter/engine/bench.h"

namespace kilter::cli {

struct ShapeArguments {
    int64_t batch = 0;
    std::vector<std::string> shapes;
    //! Throws CLI::ValidationError for a shape that cannot be read.
    ShapeOptions parsed() const;
};

void add_shape_options(CLI::App& command, ShapeArguments& arguments);

//! "name=rest" in two; throws CLI::ValidationError naming `option` when there is no '='.
std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text);

//! "name=1x3x224x224"; no dimension is below `lowest`.
std::pair<std::string, Shape> parse_shape(const std::string& option, const std::string& text, int64_t lowest);

}  // namespace kilter::cli
