// TensorBundle: the variables of a SavedModel, an index (a sorted string table) beside files of raw tensors.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "kilter/base/tensor.h"

namespace kilter::tensorflow {

class Bundle {
  public:
    //! `prefix` is the path without ".index". Throws Error that names the file.
    explicit Bundle(const std::filesystem::path& prefix);

    bool has(const std::string& key) const { return entries_.contains(key); }
    //! The tensor, in the mapped file. Throws Error when there is none or kilter cannot hold it.
    Tensor read(const std::string& key) const;

  private:
    std::map<std::string, std::string> entries_;  // key to BundleEntryProto
    std::vector<std::shared_ptr<const MappedFile>> shards_;
};

//! All entries of a sorted string table in the format of LevelDB. Throws Error for damaged and compressed ones.
std::map<std::string, std::string> read_string_table(std::string_view file);

}  // namespace kilter::tensorflow
