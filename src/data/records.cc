#include "data/records.h"

#include <charconv>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/mapped_file.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

template <class T>
T load(Bytes bytes, size_t offset) {
    T value{};
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

// TFRecord: length (8 bytes), its checksum (4), content, its checksum (4).
constexpr size_t kTfHeader = 12;
constexpr size_t kTfFooter = 4;

// TensorFlow stores checksums rotated and shifted, so that those of data that hold checksums mean something.
uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xA282EAD8; }

size_t tfrecord_length(Bytes file, size_t offset) {
    const size_t left = file.size() - offset;
    require(left >= kTfHeader + kTfFooter, "the file ends within the record");
    const auto length = load<uint64_t>(file, offset);
    require(masked(crc32c(file.subspan(offset, 8))) == load<uint32_t>(file, offset + 8),
            "the checksum of its length is wrong");
    require(length <= left - kTfHeader - kTfFooter, "it says {} bytes, {} are left", length,
            left - kTfHeader - kTfFooter);
    return static_cast<size_t>(length);
}

// RecordIO: a magic number, 3 bits that say which part this is and 29 bits of length, content, padding to 4 bytes.
// A record whose content holds the magic number is split there, and the number left out.
constexpr uint32_t kMagic = 0xCED7230A;
enum Part : uint32_t { kWhole, kFirst, kMiddle, kLast };

struct Chunk {
    Part part = kWhole;
    Bytes content;
    size_t next = 0;
};

Chunk chunk_at(Bytes file, size_t offset) {
    require(offset <= file.size() && file.size() - offset >= 8, "the file ends within the record");
    require(load<uint32_t>(file, offset) == kMagic, "there is no magic number at byte {}", offset);
    const auto word = load<uint32_t>(file, offset + 4);
    const size_t length = word & ((1U << 29) - 1);
    const size_t left = file.size() - offset - 8;
    require(length <= left, "it says {} bytes, {} are left", length, left);
    require(word >> 29 <= kLast, "a part of kind {}, expected 0 … 3", word >> 29);
    return {static_cast<Part>(word >> 29), file.subspan(offset + 8, length),
            offset + 8 + std::min(left, (length + 3) / 4 * 4)};
}

// Calls `use` with every part of a record and returns where the next record begins.
template <class Use>
size_t walk_recordio(Bytes file, size_t offset, const Use& use) {
    Chunk chunk = chunk_at(file, offset);
    require(chunk.part == kWhole || chunk.part == kFirst, "it begins with part {} of a record",
            static_cast<uint32_t>(chunk.part));
    use(chunk.content);
    while (chunk.part == kFirst || chunk.part == kMiddle) {
        chunk = chunk_at(file, chunk.next);
        require(chunk.part == kMiddle || chunk.part == kLast, "its parts are out of order");
        use(chunk.content);
    }
    return chunk.next;
}

RecordIndex walk(Bytes file, const std::function<size_t(size_t)>& next) {
    RecordIndex index;
    for (size_t offset = 0; offset < file.size();) {
        index.offsets.push_back(offset);
        try {
            offset = next(offset);
        } catch (const Error& error) {
            index.damage = error.what();
            break;
        }
    }
    return index;
}

// Lines "key<TAB>offset", as im2rec writes them.
std::vector<size_t> read_offsets(const fs::path& path) {
    const auto file = MappedFile::open(path);
    std::string_view rest(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    std::vector<size_t> offsets;
    for (int64_t number = 1; !rest.empty(); ++number) {
        const size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
        if (line.empty()) continue;
        const std::string_view word = line.substr(line.find_last_of("\t ") + 1);
        size_t offset = 0;
        const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), offset);
        require(error == std::errc() && stop == word.data() + word.size(),
                "{}: line {}: expected \"key<TAB>offset\", found '{}'", path.string(), number,
                line.substr(0, 80));
        offsets.push_back(offset);
    }
    return offsets;
}

RecordFile checked(const fs::path& path, std::shared_ptr<const MappedFile> content, RecordIndex index,
                   std::string_view kind) {
    if (!index.damage.empty() && index.offsets.size() == 1)
        throw Error(fmt::format("{}: record 0: {}", path.string(), index.damage),
                    fmt::format("is this a {} file?", kind));
    require(!index.offsets.empty(), "{}: there are no records", path.string());
    return {path.string(), std::move(content), std::move(index)};
}

}  // namespace

RecordIndex index_tfrecord(Bytes file) {
    return walk(
        file, [&](size_t offset) { return offset + kTfHeader + tfrecord_length(file, offset) + kTfFooter; });
}

Bytes tfrecord_at(Bytes file, size_t offset) {
    require(offset <= file.size(), "it lies behind the end of the file");
    const Bytes content = file.subspan(offset + kTfHeader, tfrecord_length(file, offset));
    require(masked(crc32c(content)) == load<uint32_t>(file, offset + kTfHeader + content.size()),
            "the checksum of its content is wrong");
    return content;
}

RecordIndex index_recordio(Bytes file) {
    return walk(file, [&](size_t offset) { return walk_recordio(file, offset, [](Bytes) {}); });
}

Bytes recordio_at(Bytes file, size_t offset, std::vector<std::byte>& joined) {
    joined.clear();
    Bytes first;
    size_t parts = 0;
    walk_recordio(file, offset, [&](Bytes content) {
        if (parts++ == 0) {
            first = content;
            return;
        }
        if (parts == 2) joined.assign(first.begin(), first.end());
        const auto* magic = reinterpret_cast<const std::byte*>(&kMagic);
        joined.insert(joined.end(), magic, magic + sizeof(kMagic));
        joined.insert(joined.end(), content.begin(), content.end());
    });
    return parts == 1 ? first : Bytes(joined);
}

RecordFile open_tfrecord(const fs::path& path) {
    auto content = MappedFile::open(path);
    RecordIndex index = index_tfrecord(content->bytes());
    return checked(path, std::move(content), std::move(index), "TFRecord");
}

RecordFile open_recordio(const fs::path& path, const fs::path& index_file) {
    auto content = MappedFile::open(path);
    RecordIndex index =
        index_file.empty() ? index_recordio(content->bytes()) : RecordIndex{read_offsets(index_file), ""};
    return checked(path, std::move(content), std::move(index), "RecordIO");
}

}  // namespace kilter
