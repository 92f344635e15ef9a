// A file mapped read-only into memory. Whoever holds the shared_ptr keeps the mapping alive; pages are read
// on first touch.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace kilter {

class MappedFile {
  public:
    //! Throws Error that names the file when it is missing, unreadable or not a regular file. An empty file
    //! gives no bytes.
    static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);

    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

  private:
    MappedFile(void* data, size_t size) : data_(data), size_(size) {}

    void* data_;
    size_t size_;
};

}  // namespace kilter
