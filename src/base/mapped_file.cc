#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace kilter {
namespace {

// Closes on every way out; the mapping outlives its descriptor.
struct Descriptor {
    int number;
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
    // O_NONBLOCK: opening a pipe must not wait for its writer; it is refused below.
    const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    require(file.number >= 0, "{}: cannot open the file: {}", path.string(), std::strerror(errno));
    struct stat status {};
    require(::fstat(file.number, &status) == 0, "{}: cannot read the file's size: {}", path.string(),
            std::strerror(errno));
    require(!S_ISDIR(status.st_mode), "{}: expected a file, found a directory", path.string());
    require(S_ISREG(status.st_mode), "{}: expected a regular file, found a device or pipe", path.string());
    const auto size = static_cast<size_t>(status.st_size);
    void* data = nullptr;
    if (size > 0) {
        data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
        require(data != MAP_FAILED, "{}: cannot map {} bytes: {}", path.string(), size, std::strerror(errno));
    }
    return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace kilter
