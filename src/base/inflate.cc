#include "base/inflate.h"

#include <algorithm>
#include <limits>

#include <zlib.h>

#include "base/fail.h"

namespace kilter {
namespace {

// How zlib is told what surrounds the data.
constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr int kNothing = -MAX_WBITS;

std::vector<std::byte> unpack(std::span<const std::byte> bytes, size_t most, int surroundings) {
    require(bytes.size() <= std::numeric_limits<uInt>::max(), "a packed file of {} bytes is too large",
            bytes.size());
    z_stream stream{};
    require(inflateInit2(&stream, surroundings) == Z_OK, "out of memory");
    struct Release {
        z_stream* stream;
        ~Release() { inflateEnd(stream); }
    } const release{&stream};
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());

    std::vector<std::byte> result(std::min(most, 4 * bytes.size() + 64));
    size_t done = 0;
    while (true) {
        const size_t room = std::min<size_t>(result.size() - done, std::numeric_limits<uInt>::max());
        stream.next_out = reinterpret_cast<Bytef*>(result.data() + done);
        stream.avail_out = static_cast<uInt>(room);
        const int status = inflate(&stream, Z_NO_FLUSH);
        done += room - stream.avail_out;
        if (status == Z_STREAM_END) break;
        require(status == Z_OK || status == Z_BUF_ERROR, "damaged data: {}",
                stream.msg ? stream.msg : "no more is known");
        if (stream.avail_out > 0) fail("the packed file is truncated");
        require(result.size() < most, "it unpacks to more than {} bytes", most);
        result.resize(std::min(most, 2 * result.size()));
    }
    result.resize(done);
    return result;
}

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
    return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

std::vector<std::byte> gunzip(std::span<const std::byte> bytes, size_t most) {
    return unpack(bytes, most, kGzipOnly);
}

std::vector<std::byte> inflate_raw(std::span<const std::byte> bytes, size_t most) {
    return unpack(bytes, most, kNothing);
}

uint32_t zip_checksum(std::span<const std::byte> bytes) {
    return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace kilter
