// Datasets of images in record files.
#pragma once

#include "data/dataset_table.h"

namespace kilter {

//! Is this how the shards of a TFRecord set are called: train-00000-of-01024, x.tfrecord?
bool is_tfrecord_name(const std::filesystem::path& path);
//! A file, or a folder of shards.
DatasetPointer open_image_records(const std::filesystem::path& path);
//! A .rec file; the .idx file beside it is used when there is one.
DatasetPointer open_rec(const std::filesystem::path& path);

//! Image and label of one record. Throw Error. For the fuzzers, too.
Sample parse_image_example(std::span<const std::byte> record);
Sample parse_image_rec(std::span<const std::byte> record);

}  // namespace kilter
