// Sorted string tables, as LevelDB and TensorFlow's checkpoints have them: blocks of entries whose keys share prefixes,
// an index block that lists them, and a footer that says where the index is.
#include <cstring>

#include <protozero/varint.hpp>

#include "base/crc32c.h"
#include "base/fail.h"
#include "formats/tensorflow/bundle.h"

namespace kilter::tensorflow {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr size_t kTrailerBytes = 5;  // kind of compression, checksum

template <class T>
T fixed_at(std::string_view bytes, size_t offset) {
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

uint64_t take_varint(std::string_view& bytes) {
    const char* data = bytes.data();
    try {
        const uint64_t value = protozero::decode_varint(&data, bytes.data() + bytes.size());
        bytes.remove_prefix(static_cast<size_t>(data - bytes.data()));
        return value;
    } catch (const protozero::exception&) {
        fail("the table is damaged: a number is cut off");
    }
}

std::string_view take(std::string_view& bytes, uint64_t count) {
    require(count <= bytes.size(), "the table is damaged: an entry is cut off");
    const std::string_view piece = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return piece;
}

// The block that a handle (offset and size) stands for, without its trailer.
std::string_view block_at(std::string_view file, std::string_view& handle) {
    const uint64_t offset = take_varint(handle);
    const uint64_t size = take_varint(handle);
    require(
        offset <= file.size() && size <= file.size() - offset && kTrailerBytes <= file.size() - offset - size,
        "the table is damaged: a block of {} bytes at {} is outside of the file", size, offset);
    const std::string_view trailer = file.substr(offset + size, kTrailerBytes);
    require(trailer[0] == 0, "the table is compressed (kind {}), which kilter does not read",
            static_cast<int>(trailer[0]));
    const uint32_t stored = fixed_at<uint32_t>(trailer, 1);
    const uint32_t found = crc32c(std::as_bytes(std::span(file.data() + offset, size + 1)));
    // Stored checksums are turned and shifted, so that a checksum of data with checksums is a good one.
    require(stored == ((found >> 15U) | (found << 17U)) + 0xa282ead8U,
            "the table is damaged: the checksum of a block is wrong");
    return file.substr(offset, size);
}

template <class Visit>
void each_entry(std::string_view block, Visit visit) {
    require(block.size() >= sizeof(uint32_t), "the table is damaged: a block is too short");
    const uint64_t restarts = fixed_at<uint32_t>(block, block.size() - sizeof(uint32_t));
    const uint64_t tail = (restarts + 1) * sizeof(uint32_t);
    require(tail <= block.size(), "the table is damaged: a block is too short");
    std::string_view rest = block.substr(0, block.size() - tail);
    std::string key;
    while (!rest.empty()) {
        const uint64_t shared = take_varint(rest);
        const uint64_t own = take_varint(rest);
        const uint64_t length = take_varint(rest);
        require(shared <= key.size(), "the table is damaged: a key shares more than there is");
        key.resize(shared);
        key += take(rest, own);
        visit(key, take(rest, length));
    }
}

}  // namespace

std::map<std::string, std::string> read_string_table(std::string_view file) {
    require(file.size() >= kFooterBytes, "the table has {} bytes, less than its footer", file.size());
    std::string_view footer = file.substr(file.size() - kFooterBytes);
    require(fixed_at<uint64_t>(footer, kFooterBytes - sizeof(uint64_t)) == kTableMagic,
            "this is no table of variables: its last bytes are wrong");
    take_varint(footer);  // the meta index, which nobody uses
    take_varint(footer);
    std::map<std::string, std::string> entries;
    each_entry(block_at(file, footer), [&](const std::string&, std::string_view handle) {
        each_entry(block_at(file, handle),
                   [&](const std::string& key, std::string_view value) { entries[key] = value; });
    });
    return entries;
}

}  // namespace kilter::tensorflow
