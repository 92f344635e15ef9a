#include "formats/mxnet/params.h"

#include <array>
#include <cstring>

#include "base/fail.h"
#include "base/mapped_file.h"

namespace kilter::mxnet {
namespace {

constexpr uint64_t kListMagic = 0x112;
// An array starts with one of these; before they came, with its rank.
constexpr uint32_t kVersion1 = 0xF993FAC8;
constexpr uint32_t kVersion2 = 0xF993FAC9;  // with a kind of storage
constexpr uint32_t kVersion3 = 0xF993FACA;  // with shapes as NumPy's: a scalar has rank 0
constexpr uint32_t kHighestRank = 32;
constexpr int32_t kCpu = 1;

// By MXNet's number.
constexpr std::array kTypes{DType::f32, DType::f64, DType::f16,     DType::u8,  DType::i32,
                            DType::i8,  DType::i64, DType::boolean, DType::i16, DType::u16,
                            DType::u32, DType::u64, DType::bf16};

class Reader {
  public:
    Reader(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper)
        : bytes_(bytes), keeper_(std::move(keeper)) {}

    template <class T>
    T number(std::string_view what) {
        T value;
        std::memcpy(&value, take(sizeof(T), what), sizeof(T));
        return value;
    }

    const std::byte* take(size_t count, std::string_view what) {
        require(count <= bytes_.size() - at_,
                "the file is truncated: {} needs {} bytes at offset {}, {} are left", what, count, at_,
                bytes_.size() - at_);
        const std::byte* found = bytes_.data() + at_;
        at_ += count;
        return found;
    }

    // How many entries of at least `least` bytes follow.
    size_t count(size_t least, std::string_view what) {
        const auto value = number<uint64_t>(what);
        require(value <= (bytes_.size() - at_) / least, "the file claims {} {}, but holds {} more bytes",
                value, what, bytes_.size() - at_);
        return value;
    }

    Tensor array() {
        const auto magic = number<uint32_t>("an array");
        if (magic == kVersion2 || magic == kVersion3) {
            const auto storage = number<int32_t>("the kind of storage");
            require(storage != 1, "row-sparse arrays are not supported (convert it with tostype('default'))");
            require(storage != 2, "CSR arrays are not supported (convert it with tostype('default'))");
            require(storage == 0 || storage == -1, "unknown kind of storage {}", storage);
        }
        const Shape shape = magic == kVersion1 || magic == kVersion2 || magic == kVersion3
                                ? dimensions<int64_t>(number<uint32_t>("a rank"), magic == kVersion3)
                                : dimensions<uint32_t>(magic, false);
        if (none_) return {};
        take(8, "a device");
        const auto type = number<int32_t>("an element type");
        require(type >= 0 && static_cast<size_t>(type) < kTypes.size(), "unknown element type {}", type);
        const DType dtype = kTypes[static_cast<size_t>(type)];
        const size_t size = byte_count(dtype, element_count(shape));
        return Tensor::mapped(dtype, shape, take(size, "the elements"), keeper_);
    }

    size_t offset() const { return at_; }
    bool at_end() const { return at_ == bytes_.size(); }

  private:
    // Files without NumPy's shapes mean "no array" by rank 0, the others by rank -1.
    template <class T>
    Shape dimensions(uint32_t rank, bool numpy) {
        none_ = numpy ? rank == ~0U : rank == 0;
        if (none_) return {};
        require(rank <= kHighestRank, "found rank {}: this is not an array", rank);
        Shape shape;
        for (uint32_t i = 0; i < rank; ++i) shape.push_back(static_cast<int64_t>(number<T>("a dimension")));
        for (const int64_t dim : shape) require(dim >= 0, "found a dimension of {}", dim);
        return shape;
    }

    std::span<const std::byte> bytes_;
    std::shared_ptr<const void> keeper_;
    size_t at_ = 0;
    bool none_ = false;
};

void append(std::string& bytes, const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
}

template <class T>
void append(std::string& bytes, T value) {
    append(bytes, &value, sizeof(value));
}

int32_t code_of(DType dtype, const std::string& name) {
    for (size_t i = 0; i < kTypes.size(); ++i)
        if (kTypes[i] == dtype) return static_cast<int32_t>(i);
    fail("'{}': MXNet has no arrays of {}", name, kilter::name(dtype));
}

}  // namespace

NamedArrays read_params_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper) {
    require(bytes.size() < 2 || std::memcmp(bytes.data(), "PK", 2) != 0,
            "these are parameters in an .npz archive; save them with mx.nd.save");
    Reader reader(bytes, std::move(keeper));
    require(reader.number<uint64_t>("the header") == kListMagic, "this is not a file of MXNet arrays");
    reader.take(8, "the header");
    NamedArrays arrays(reader.count(4, "arrays"));
    for (size_t i = 0; i < arrays.size(); ++i) {
        try {
            arrays[i].second = reader.array();
        } catch (const Error& error) {
            throw error.in(fmt::format("array {}", i));
        }
    }
    const size_t names = reader.count(8, "names");
    require(names == arrays.size(), "{} arrays have {} names", arrays.size(), names);
    for (auto& [name, array] : arrays) {
        const size_t length = reader.count(1, "characters");
        name.assign(reinterpret_cast<const char*>(reader.take(length, "a name")), length);
    }
    require(reader.at_end(), "something follows the names at offset {}", reader.offset());
    return arrays;
}

NamedArrays read_params(const std::filesystem::path& path) {
    const auto file = MappedFile::open(path);
    try {
        return read_params_bytes(file->bytes(), file);
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

std::string write_params_bytes(const NamedArrays& arrays) {
    std::string bytes;
    append(bytes, kListMagic);
    append(bytes, uint64_t{0});
    append(bytes, static_cast<uint64_t>(arrays.size()));
    for (const auto& [name, array] : arrays) {
        require(array.rank() > 0, "'{}': MXNet files have no arrays of rank 0", name);
        append(bytes, kVersion2);
        append(bytes, int32_t{0});
        append(bytes, static_cast<uint32_t>(array.rank()));
        for (const int64_t dim : array.shape()) append(bytes, dim);
        append(bytes, kCpu);
        append(bytes, int32_t{0});
        append(bytes, code_of(array.dtype(), name));
        append(bytes, array.raw(), array.bytes());
    }
    append(bytes, static_cast<uint64_t>(arrays.size()));
    for (const auto& [name, array] : arrays) {
        append(bytes, static_cast<uint64_t>(name.size()));
        bytes += name;
    }
    return bytes;
}

}  // namespace kilter::mxnet
