// Datasets of NumPy arrays.
#pragma once

#include "data/dataset_table.h"

namespace kilter {

//! A .npy file, whose first axis counts the samples; a .npz file with arrays named like the inputs; or a folder of such files,
//! one sample each. `labels` is a list of classes, or empty; arrays called "label" or "labels" are labels, too.
//! Without `inputs`, all other arrays are inputs, in the order of their names.
DatasetPointer open_arrays(const std::filesystem::path& path, Ports inputs,
                           const std::filesystem::path& labels = {});
//! The same with one array for each name.
DatasetPointer from_arrays(std::map<std::string, Tensor> arrays, const std::string& where, Ports inputs,
                           const std::filesystem::path& labels = {});

}  // namespace kilter
