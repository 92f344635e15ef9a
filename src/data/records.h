// Files of records that are read by position: TFRecord and MXNet's RecordIO.
// Damage is found where it is: records before it can be read, and it counts as one record, whose reading is an Error.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kilter {

class MappedFile;

//! Where the records of a file begin.
struct RecordIndex {
    std::vector<size_t> offsets;
    std::string damage;  // what is wrong at the last of the offsets; empty when all is well
};

//! Record after record to the end of the file; only their lengths are looked at.
RecordIndex index_tfrecord(std::span<const std::byte> file);
RecordIndex index_recordio(std::span<const std::byte> file);

//! The content of the record at an offset. Throws Error when it is damaged.
std::span<const std::byte> tfrecord_at(std::span<const std::byte> file, size_t offset);
//! The same; `joined` holds the content when the record is stored in several parts.
std::span<const std::byte> recordio_at(std::span<const std::byte> file, size_t offset,
                                       std::vector<std::byte>& joined);

//! One file and where its records are.
struct RecordFile {
    std::string name;
    std::shared_ptr<const MappedFile> content;
    RecordIndex index;
};

//! Throws Error when not even the first record is one.
RecordFile open_tfrecord(const std::filesystem::path& path);
//! With the offsets of an index file, or, when it is empty, after a look at every record.
RecordFile open_recordio(const std::filesystem::path& path, const std::filesystem::path& index);

}  // namespace kilter
