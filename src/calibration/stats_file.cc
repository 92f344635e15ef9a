// The file of Stats: a header, the values one after another, a checksum. Numbers are little-endian; counts of histograms are
// variable-length integers with runs of zeros folded, so a value takes a few kilobytes.
#include <bit>
#include <cstring>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "kilter/calibration/stats.h"

namespace kilter {
namespace {

constexpr std::string_view kMagic = "kilter statistics\n";
constexpr uint32_t kVersion = 1;
static_assert(std::endian::native == std::endian::little);

uint64_t checksum(std::span<const std::byte> bytes) {
    uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
    for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001B3U;
    return hash;
}

class Writer {
  public:
    template <class T>
    void plain(T value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    template <class T>
    void array(const std::vector<T>& values) {
        number(values.size());
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    }
    void number(uint64_t value) {
        for (; value >= 128; value >>= 7) bytes.push_back(static_cast<char>(value | 128));
        bytes.push_back(static_cast<char>(value));
    }
    void text(std::string_view value) {
        number(value.size());
        bytes.append(value);
    }
    // A zero is followed by how many more follow it.
    void counts(const std::vector<int64_t>& values) {
        number(values.size());
        for (size_t i = 0; i < values.size();) {
            number(static_cast<uint64_t>(values[i]));
            if (values[i++] != 0) continue;
            const size_t first = i;
            while (i < values.size() && values[i] == 0) ++i;
            number(i - first);
        }
    }

    std::string bytes;
};

class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <class T>
    T plain() {
        T value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }
    template <class T>
    std::vector<T> array() {
        const uint64_t count = number();
        require(count <= bytes_.size() / sizeof(T), "the file ends in the middle of a value");
        std::vector<T> values(count);
        if (count > 0) std::memcpy(values.data(), take(count * sizeof(T)).data(), count * sizeof(T));
        return values;
    }
    uint64_t number() {
        uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<uint64_t>(take(1)[0]);
            value |= (byte & 127) << shift;
            if (byte < 128) return value;
        }
        fail("a number that is too large");
    }
    int64_t count() {
        const uint64_t value = number();
        require(value <= static_cast<uint64_t>(INT64_MAX), "a count that is too large");
        return static_cast<int64_t>(value);
    }
    std::string text() {
        const uint64_t size = number();
        const auto part = take(size);
        return {reinterpret_cast<const char*>(part.data()), part.size()};
    }
    std::vector<int64_t> counts() {
        const uint64_t size = number();
        require(size <= Histogram::kBins, "a histogram with {} bins, {} are the most", size,
                Histogram::kBins);
        std::vector<int64_t> values;
        while (values.size() < size) {
            values.push_back(count());
            if (values.back() != 0) continue;
            const uint64_t more = number();
            require(more <= size - values.size(), "a histogram with more bins than it says");
            values.resize(values.size() + more);
        }
        return values;
    }
    bool done() const { return bytes_.empty(); }

  private:
    std::span<const std::byte> take(uint64_t size) {
        require(size <= bytes_.size(), "the file ends in the middle of a value");
        const auto part = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return part;
    }

    std::span<const std::byte> bytes_;
};

void write(Writer& to, const ValueStats& value) {
    to.number(static_cast<uint64_t>(value.count));
    to.plain(value.min);
    to.plain(value.max);
    to.plain(static_cast<int32_t>(value.channel_axis));
    to.array(value.channel_min);
    to.array(value.channel_max);
    to.number(value.sums.size());
    for (const ExactSum& sum : value.sums)
        for (const uint64_t word : sum.words()) to.plain(word);
    to.plain(static_cast<int32_t>(value.histogram.exponent()));
    to.number(static_cast<uint64_t>(value.histogram.zeros()));
    to.counts(value.histogram.negative());
    to.counts(value.histogram.positive());
}

ValueStats read_value(Reader& from) {
    ValueStats value;
    value.count = from.count();
    value.min = from.plain<float>();
    value.max = from.plain<float>();
    value.channel_axis = from.plain<int32_t>();
    value.channel_min = from.array<float>();
    value.channel_max = from.array<float>();
    const uint64_t sums = from.number();
    const uint64_t channels = value.channel_axis < 0 ? 0 : sums;
    require(sums > 0 && value.channel_min.size() == channels && value.channel_max.size() == channels,
            "the figures per channel do not fit together");
    for (uint64_t i = 0; i < sums; ++i) {
        std::array<uint64_t, ExactSum::kWords> words{};
        for (uint64_t& word : words) word = from.plain<uint64_t>();
        value.sums.push_back(ExactSum::from_words(words));
    }
    const auto exponent = from.plain<int32_t>();
    const int64_t zeros = from.count();
    std::vector<int64_t> negative = from.counts();
    value.histogram = Histogram::from_parts(exponent, zeros, std::move(negative), from.counts());
    require(value.count > 0 && value.histogram.count() <= value.count && value.min <= value.max,
            "the counts do not fit together");
    value.update_means();
    return value;
}

Stats read(std::span<const std::byte> bytes) {
    const bool ours =
        bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
    require(ours, "not a file of calibration statistics");
    Reader from(bytes.subspan(kMagic.size()));
    const auto version = from.plain<uint32_t>();
    require(version == kVersion, "version {} of the statistics format; this kilter reads version {}", version,
            kVersion);
    require(bytes.size() >= kMagic.size() + sizeof version + sizeof(uint64_t), "the file is cut off");
    uint64_t stored = 0;
    const auto content = bytes.first(bytes.size() - sizeof stored);
    std::memcpy(&stored, bytes.last(sizeof stored).data(), sizeof stored);
    require(stored == checksum(content), "the file is damaged or cut off: its checksum is wrong");

    Reader body(content.subspan(kMagic.size() + sizeof version));
    Stats stats;
    stats.samples = body.count();
    for (uint64_t left = body.number(); left > 0; --left) {
        std::string name = body.text();
        ValueStats value;
        try {
            value = read_value(body);
        } catch (const Error& error) {
            throw error.in(fmt::format("value '{}'", name));
        }
        require(stats.values.emplace(name, std::move(value)).second, "value '{}' is there twice", name);
    }
    require(body.done(), "the file goes on after its last value");
    return stats;
}

}  // namespace

void Stats::save(const std::filesystem::path& path) const {
    Writer to;
    to.bytes = kMagic;
    to.plain(kVersion);
    to.number(static_cast<uint64_t>(samples));
    to.number(values.size());
    for (const auto& [name, value] : values) {
        to.text(name);
        write(to, value);
    }
    to.plain(checksum(std::as_bytes(std::span(to.bytes))));
    OutputFile file(path);
    file.write(to.bytes);
    file.commit();
}

Stats Stats::load(const std::filesystem::path& path) {
    const auto file = MappedFile::open(path);
    try {
        return read(file->bytes());
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

}  // namespace kilter
