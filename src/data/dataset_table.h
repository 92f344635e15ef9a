// The datasets by file, for the list in datasets.cc, and what they share.
#pragma once

#include <filesystem>
#include <functional>

#include "kilter/data/dataset.h"

namespace kilter {

using DatasetPointer = std::unique_ptr<Dataset>;
using Ports = std::span<const Port>;

DatasetPointer make_image_folder(const Settings& settings, Ports inputs);
DatasetPointer make_imagenet_raw(const Settings& settings, Ports inputs);
DatasetPointer make_numpy(const Settings& settings, Ports inputs);
DatasetPointer make_idx(const Settings& settings, Ports inputs);
DatasetPointer make_cifar10(const Settings& settings, Ports inputs);
DatasetPointer make_cifar100(const Settings& settings, Ports inputs);
DatasetPointer make_image_record(const Settings& settings, Ports inputs);
DatasetPointer make_recordio(const Settings& settings, Ports inputs);
DatasetPointer make_coco(const Settings& settings, Ports inputs);
DatasetPointer make_glue(const Settings& settings, Ports inputs);
DatasetPointer make_squad(const Settings& settings, Ports inputs);
DatasetPointer make_dummy(const Settings& settings, Ports inputs);
DatasetPointer make_dummy_v2(const Settings& settings, Ports inputs);

//! The path under a key; throws Error when there is no such file or folder.
std::filesystem::path existing_path(const Settings& settings, std::string_view key);
//! The files of a folder that are wanted, by name. Throws Error when it cannot be read.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                            const std::function<bool(const std::filesystem::path&)>& wanted);
//! ".png" for "A.PNG".
std::string lower_extension(const std::filesystem::path& path);
//! The label of a class.
Label class_label(int64_t index);

}  // namespace kilter
