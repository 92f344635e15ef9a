#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fail.h"

namespace kilter {
namespace {

constexpr size_t kBufferSize = 1U << 20U;

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
    std::filesystem::path pattern = target_;
    pattern.replace_filename(fmt::format(".{}.XXXXXX", target_.filename().string()));
    temporary_ = pattern.string();
    descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
    if (descriptor_ < 0) {
        temporary_.clear();
        failed("create");
    }
    // mkostemp makes private files; the result gets the permissions of any other new file.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(descriptor_, 0666 & ~mask);
}

AtomicFile::~AtomicFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::failed(const char* what) const {
    fail("{}: cannot {} the file: {}", target_.string(), what, std::strerror(errno));
}

void AtomicFile::write(const void* data, size_t size) {
    if (buffer_.size() + size > kBufferSize) flush();
    if (size <= kBufferSize) buffer_.append(static_cast<const char*>(data), size);
    else write_through(static_cast<const char*>(data), size);
}

void AtomicFile::flush() {
    write_through(buffer_.data(), buffer_.size());
    buffer_.clear();
}

void AtomicFile::write_through(const char* data, size_t size) {
    while (size > 0) {
        const ssize_t written = ::write(descriptor_, data, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) failed("write");
        data += written;
        size -= static_cast<size_t>(written);
    }
}

void AtomicFile::sync() {
    flush();
    if (::fsync(descriptor_) != 0) failed("write");
}

void AtomicFile::commit() {
    sync();
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) failed("put in place");
    temporary_.clear();
}

}  // namespace kilter
