// Reading MXNet models: "-symbol.json" and ".params". Weights stay in the mapped file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kilter/graph/graph.h"

namespace kilter::mxnet {

struct ReadOptions {
    //! What inputs are. What is not told, an element type for one, is what the symbol says; of shapes also what the first
    //! convolution tells.
    std::vector<std::pair<std::string, ValueType>> inputs;
};

//! The two files of a model.
struct Files {
    std::filesystem::path symbol, params;
};

//! `path` is the symbol, the parameters, or the prefix that both share; of several epochs the last one is taken. Throws Error
//! when one of the two is missing.
Files find_files(const std::filesystem::path& path);
//! Is it the name of an MXNet model?
bool is_model(const std::filesystem::path& path);

//! Throws Error that names the file and what is wrong with it.
Model read(const std::filesystem::path& path, const ReadOptions& options = {});
//! From memory; the parameters are copied once.
Model read_bytes(std::string_view symbol, std::span<const std::byte> params, const ReadOptions& options = {});

}  // namespace kilter::mxnet
