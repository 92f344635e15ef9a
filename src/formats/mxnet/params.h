// MXNet's ".params" files: a list of named arrays. "arg:" and "aux:" in front of a name tell weights from running statistics.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kilter/base/tensor.h"

namespace kilter::mxnet {

using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

//! Every version of the format that MXNet 1.x and 2.x write; weights stay in the mapped file. Sparse arrays are refused by name.
//! Throws Error that names the file and what is wrong with it.
NamedArrays read_params(const std::filesystem::path& path);
//! From memory, kept alive by `keeper`.
NamedArrays read_params_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper);

//! The version that 1.5 and newer read. Throws Error when MXNet has no such element type.
std::string write_params_bytes(const NamedArrays& arrays);

}  // namespace kilter::mxnet
