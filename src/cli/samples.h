// The options --data and how files become inputs, which several commands share.
#pragma once

#include <CLI/CLI.hpp>

#include "kilter/data/loader.h"
#include "kilter/data/open.h"

namespace kilter::cli {

struct SampleArguments {
    std::vector<std::string> sources;
    std::string scale, layout;
    std::vector<float> mean, std;
    int64_t size = 0, resize = 0;
    int64_t samples = 0;  // 0: all there are
    int64_t batch = 1;
    std::string labels;

    //! Throws CLI::ValidationError for a word that cannot be read, Error when the files do not fit the inputs or when there
    //! is no sample.
    Loader open(const std::vector<Port>& inputs) const;
    //! The same for other files, or other ways to go through them.
    Loader open(const std::vector<std::string>& files, const std::vector<Port>& inputs,
                LoaderOptions how) const;
};

void add_sample_options(CLI::App& command, SampleArguments& arguments, const std::string& samples_help);
void add_labels_option(CLI::App& command, SampleArguments& arguments);

}  // namespace kilter::cli
