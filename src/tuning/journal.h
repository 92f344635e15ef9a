// Journal: an append-only file of records. Each is on the disk before append() returns, and carries a checksum: whatever happens
// to the process, what was recorded stays, and a record that was being written is recognised and dropped.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kilter {

class Journal {
  public:
    enum class Open { create, resume };
    //! create: the file must not exist. resume: it must. Takes the file for this process alone. Throws Error when another process
    //! has it, when it is no journal, or when it is damaged anywhere but in its last record.
    Journal(std::filesystem::path path, Open how);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    //! What was in the file when it was opened: JSON texts, one per record.
    const std::vector<std::string>& records() const { return records_; }
    //! Adds one line of text. When that fails (the disk is full), the file is as it was before, and Error is thrown.
    void append(std::string_view record);

    //! Only reads, without taking the file.
    static std::vector<std::string> read(const std::filesystem::path& path);

  private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    int64_t end_ = 0;  // of the last complete record
    std::vector<std::string> records_;
};

}  // namespace kilter
