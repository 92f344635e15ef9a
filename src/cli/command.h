// The sub-commands of `kilter`: each adds itself to the application and runs when it was chosen.
#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "kilter/base/error.h"

namespace kilter::cli {

//! Runs `work`; its errors get the name of the file they are about, unless they have it already.
template <class Work>
auto about(const std::string& file, Work&& work) {
    try {
        return work();
    } catch (const Error& error) {
        throw std::string_view(error.what()).starts_with(file) ? error : error.in(file);
    }
}

void add_inspect(CLI::App& app);
void add_run(CLI::App& app);
void add_bench(CLI::App& app);
void add_quantize(CLI::App& app);
void add_diff(CLI::App& app);
void add_tune(CLI::App& app);
void add_eval(CLI::App& app);
void add_recover(CLI::App& app);
void add_sensitivity(CLI::App& app);
void add_config(CLI::App& app);
void add_tf(CLI::App& app);

}  // namespace kilter::cli
