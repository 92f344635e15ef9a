#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace kilter {
namespace {

// One write call is bounded: Linux transfers at most 2 GiB at once.
constexpr size_t kLargestWrite = size_t{1} << 30;

std::filesystem::path partial_name(const std::filesystem::path& path) {
    static std::atomic<int> counter{0};
    std::filesystem::path partial = path;
    partial += fmt::format(".{}-{}.partial", ::getpid(), counter++);
    return partial;
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)), partial_(partial_name(path_)) {
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    require(descriptor_ >= 0, "{}: cannot create the file: {}", path_.string(), std::strerror(errno));
}

OutputFile::~OutputFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(partial_.c_str());
}

void OutputFile::write(const void* data, size_t bytes) {
    const char* rest = static_cast<const char*>(data);
    position_ += bytes;
    while (bytes > 0) {
        const ssize_t written = ::write(descriptor_, rest, std::min(bytes, kLargestWrite));
        if (written < 0 && errno == EINTR) continue;
        require(written > 0, "{}: cannot write: {}", path_.string(), std::strerror(errno));
        rest += written;
        bytes -= static_cast<size_t>(written);
    }
}

void OutputFile::sync() {
    require(::fsync(descriptor_) == 0, "{}: cannot write: {}", path_.string(), std::strerror(errno));
}

void OutputFile::commit() {
    sync();
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (::close(descriptor) != 0 || ::rename(partial_.c_str(), path_.c_str()) != 0) {
        const int error = errno;
        ::unlink(partial_.c_str());
        fail("{}: cannot write: {}", path_.string(), std::strerror(error));
    }
}

}  // namespace kilter
