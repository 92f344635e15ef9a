// Files with the classes of samples: text with lines "file class" or "class", or a .npy array of whole numbers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace kilter {

struct LabelList {
    std::vector<std::string> files;  // empty when there are only classes, one for each sample in its order
    std::vector<int64_t> classes;
};

//! Throws Error that names the file and the line.
LabelList read_labels(const std::filesystem::path& path);

}  // namespace kilter
