// A file that appears complete or not at all: written under a temporary name beside the target, then renamed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace kilter {

class AtomicFile {
  public:
    //! Throws Error when the directory cannot be written to.
    explicit AtomicFile(std::filesystem::path target);
    //! Without commit() the temporary file is removed and the target stays as it was.
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    void write(const void* data, size_t size);
    //! Everything written so far is on the disk after this.
    void sync();
    //! sync(), then puts the file in place.
    void commit();

  private:
    [[noreturn]] void failed(const char* what) const;
    void flush();
    void write_through(const char* data, size_t size);

    std::filesystem::path target_;
    std::string temporary_;  // empty once renamed
    std::string buffer_;
    int descriptor_ = -1;
};

}  // namespace kilter
