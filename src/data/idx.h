// The idx files of MNIST: a type, dimensions, and bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "data/dataset_table.h"

namespace kilter {

//! The u8 array in a file's bytes, in place and kept alive by `keeper`. Throws Error.
Tensor parse_idx(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper);
//! A file may be packed with gzip.
Tensor read_idx(const std::filesystem::path& path);
//! Is this how MNIST calls its files?
bool is_idx_name(const std::filesystem::path& path);

//! Images [samples, height, width] and labels [samples]; without a name, those beside the images if they are there.
DatasetPointer open_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace kilter
