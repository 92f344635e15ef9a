// OutputFile: a file that is written aside and takes its place only when it is complete.
// A crash, a full disk or an exception leaves the old file, or none, but never half of one.
#pragma once

#include <filesystem>
#include <string_view>

namespace kilter {

class OutputFile {
  public:
    //! Creates "<path>.<unique>.partial" beside `path`; throws Error when that is not possible.
    explicit OutputFile(std::filesystem::path path);
    ~OutputFile();  // removes the partial file unless commit() was reached
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(const void* data, size_t bytes);
    void write(std::string_view text) { write(text.data(), text.size()); }
    //! Bytes written so far.
    size_t position() const { return position_; }
    //! Returns when everything written so far is on the disk.
    void sync();
    //! sync(), then renames to the final path.
    void commit();

  private:
    std::filesystem::path path_;
    std::filesystem::path partial_;
    int descriptor_ = -1;
    size_t position_ = 0;
};

}  // namespace kilter
