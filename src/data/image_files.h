// Datasets of image files: a folder, folders of classes, or a list with labels.
#pragma once

#include "data/dataset_table.h"

namespace kilter {

//! JPEG and PNG files of a folder by name; or, when it holds folders, all below these, the n-th folder by name being class n.
//! `labels`: a list of them (labels.h), or nothing. Throws Error when there is no image, or no label for one.
DatasetPointer open_images(const std::filesystem::path& folder, const std::filesystem::path& labels = {});

}  // namespace kilter
