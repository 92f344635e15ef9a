#include "tuning/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "base/fail.h"

namespace kilter {
namespace {

// One record is a line: eight digits of CRC-32, a space, the text.
constexpr std::string_view kFirstLine = "kilter journal 1\n";
constexpr size_t kChecksum = 9;

constexpr std::array<uint32_t, 256> crc_table() {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320U : 0U);
        table[i] = value;
    }
    return table;
}

uint32_t crc32(std::string_view text) {
    static constexpr std::array<uint32_t, 256> kTable = crc_table();
    uint32_t crc = ~0U;
    for (const char c : text) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 255] ^ (crc >> 8);
    return ~crc;
}

std::string read_all(int descriptor, const std::filesystem::path& path) {
    std::string text;
    std::array<char, 1 << 16> buffer;
    while (true) {
        const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
        if (got == 0) return text;
        if (got < 0 && errno == EINTR) continue;
        require(got > 0, "{}: cannot read: {}", path.string(), std::strerror(errno));
        text.append(buffer.data(), static_cast<size_t>(got));
    }
}

bool is_record(std::string_view line) {
    if (line.size() < kChecksum || line[kChecksum - 1] != ' ') return false;
    uint32_t stored = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + kChecksum - 1, stored, 16);
    return error == std::errc() && end == line.data() + kChecksum - 1 &&
           stored == crc32(line.substr(kChecksum));
}

// The records of a file, and where the last complete one ends.
std::vector<std::string> parse(std::string_view text, const std::filesystem::path& path, int64_t& end) {
    std::vector<std::string> records;
    // A process that was killed while it made the file may have left part of the first line: a journal of nothing.
    if (kFirstLine.starts_with(text)) {
        end = static_cast<int64_t>(text == kFirstLine ? text.size() : 0);
        return records;
    }
    require(text.starts_with(kFirstLine), "{}: this is no journal of kilter", path.string());
    size_t at = kFirstLine.size();
    while (at < text.size()) {
        const size_t newline = text.find('\n', at);
        if (newline == std::string_view::npos) break;  // cut off in the middle
        const std::string_view line = text.substr(at, newline - at);
        if (!is_record(line)) {
            if (newline + 1 == text.size()) break;  // the last one: some of it never reached the disk
            throw Error(fmt::format("{}: record {} is damaged", path.string(), records.size() + 1),
                        "the records before it are fine; kilter recover can still rebuild their trials");
        }
        records.emplace_back(line.substr(kChecksum));
        at = newline + 1;
    }
    end = static_cast<int64_t>(at);
    return records;
}

// True when everything was written and reached the disk.
bool write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        text.remove_prefix(static_cast<size_t>(written));
    }
    return ::fsync(descriptor) == 0;
}

// A new file is safe only when its folder knows it.
void sync_folder(const std::filesystem::path& path) {
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

}  // namespace

Journal::Journal(std::filesystem::path path, Open how) : path_(std::move(path)) {
    const int flags = O_RDWR | O_CLOEXEC | (how == Open::create ? O_CREAT | O_EXCL : 0);
    descriptor_ = ::open(path_.c_str(), flags, 0644);
    if (descriptor_ < 0 && errno == EEXIST)
        throw Error(fmt::format("{}: there is a study already", path_.parent_path().string()),
                    "--resume goes on with it, another --workspace starts a new one");
    require(descriptor_ >= 0, "{}: cannot open: {}", path_.string(), std::strerror(errno));
    try {
        require(::flock(descriptor_, LOCK_EX | LOCK_NB) == 0, "{}: another process is tuning here",
                path_.parent_path().string());
        records_ = parse(read_all(descriptor_, path_), path_, end_);
        require(::ftruncate(descriptor_, end_) == 0 && ::lseek(descriptor_, end_, SEEK_SET) == end_,
                "{}: cannot cut off a half-written record: {}", path_.string(), std::strerror(errno));
        if (end_ == 0) {
            if (!write_all(descriptor_, kFirstLine)) {
                const int error = errno;
                if (how == Open::create) ::unlink(path_.c_str());
                fail("{}: cannot write: {}", path_.string(), std::strerror(error));
            }
            end_ = static_cast<int64_t>(kFirstLine.size());
            sync_folder(path_);
        }
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

Journal::~Journal() { ::close(descriptor_); }

void Journal::append(std::string_view record) {
    require(record.find('\n') == std::string_view::npos, "a record must be one line");
    const std::string line = fmt::format("{:08x} {}\n", crc32(record), record);
    if (write_all(descriptor_, line)) {
        end_ += static_cast<int64_t>(line.size());
        return;
    }
    const int error = errno;
    [[maybe_unused]] const bool restored =
        ::ftruncate(descriptor_, end_) == 0 && ::lseek(descriptor_, end_, SEEK_SET) == end_;
    throw Error(fmt::format("{}: cannot record a trial: {}", path_.string(), std::strerror(error)),
                "everything recorded before is safe: make room, then go on with --resume");
}

std::vector<std::string> Journal::read(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(descriptor >= 0, "{}: cannot open: {}", path.string(), std::strerror(errno));
    std::string text;
    try {
        text = read_all(descriptor, path);
    } catch (...) {
        ::close(descriptor);
        throw;
    }
    ::close(descriptor);
    int64_t end = 0;
    return parse(text, path, end);
}

}  // namespace kilter
