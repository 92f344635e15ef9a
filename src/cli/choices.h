// The options that say how operators are quantized, which several commands share.
#pragma once

#include <CLI/CLI.hpp>

#include "kilter/quantization/quantize.h"

namespace kilter::cli {

struct ChoiceArguments {
    std::string calibration = "auto";
    std::string weights = "per-channel";
    std::string scheme = "asym";
    std::string mode = "smart";
    std::string target = "kilter";
    std::vector<std::string> exclude, only, recipes;

    //! Throws CLI::ValidationError or Error for words that cannot be read.
    QuantizeOptions options() const;
    //! Changes only what was said on the command line: for options that come from elsewhere.
    void apply(QuantizeOptions& options, const CLI::App& command) const;
};

void add_choice_options(CLI::App& command, ChoiceArguments& arguments);

}  // namespace kilter::cli
