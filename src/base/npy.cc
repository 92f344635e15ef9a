#include "base/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>

#include "base/fail.h"
#include "base/inflate.h"
#include "base/output_file.h"

namespace kilter {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLargestHeader = size_t{1} << 20;
constexpr size_t kMostDimensions = 64;  // as in NumPy

struct Header {
    std::string descr;
    bool fortran_order = false;
    Shape shape;
};

// The header is a Python dictionary of three known keys: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
  public:
    explicit HeaderParser(std::string_view text) : rest_(text) {}

    Header parse() {
        Header header;
        bool has_descr = false;
        bool has_order = false;
        bool has_shape = false;
        expect('{');
        while (!accept('}')) {
            const std::string key = quoted();
            expect(':');
            if (key == "descr") {
                require(peek() == '\'' || peek() == '"', "arrays of structures are not supported");
                header.descr = quoted();
                has_descr = true;
            } else if (key == "fortran_order") {
                header.fortran_order = boolean();
                has_order = true;
            } else if (key == "shape") {
                header.shape = tuple();
                has_shape = true;
            } else {
                fail("unexpected key '{}' in the header", key);
            }
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        require(has_descr && has_order && has_shape, "the header lacks descr, fortran_order or shape");
        return header;
    }

  private:
    char peek() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
        return rest_.empty() ? '\0' : rest_[0];
    }

    bool accept(char wanted) {
        if (peek() != wanted) return false;
        rest_.remove_prefix(1);
        return true;
    }

    void expect(char wanted) { require(accept(wanted), "the header is damaged: expected '{}'", wanted); }

    std::string quoted() {
        const char quote = peek();
        require(quote == '\'' || quote == '"', "the header is damaged: expected a quoted word");
        const size_t end = rest_.find(quote, 1);
        require(end != std::string_view::npos, "the header is damaged: a quote is not closed");
        std::string word(rest_.substr(1, end - 1));
        rest_.remove_prefix(end + 1);
        return word;
    }

    bool boolean() {
        peek();
        for (const bool value : {true, false}) {
            const std::string_view word = value ? "True" : "False";
            if (!rest_.starts_with(word)) continue;
            rest_.remove_prefix(word.size());
            return value;
        }
        fail("the header is damaged: fortran_order is neither True nor False");
    }

    Shape tuple() {
        Shape shape;
        expect('(');
        while (!accept(')')) {
            peek();
            int64_t dim = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
            require(error == std::errc() && dim >= 0,
                    "the header is damaged: the shape is not a tuple of numbers");
            require(shape.size() < kMostDimensions, "the array has more than {} dimensions", kMostDimensions);
            rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
            shape.push_back(dim);
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
        return shape;
    }

    std::string_view rest_;
};

struct ElementFormat {
    DType dtype = DType::undefined;
    size_t bytes = 0;        // of one element in the file
    size_t swap_unit = 0;    // bytes to reverse together when the file is big-endian; 0: none
    bool wide_text = false;  // UTF-32 code points, as NumPy stores str
};

std::optional<DType> number_type(char kind, int64_t bytes) {
    switch (kind) {
        case 'b':
            return bytes == 1 ? std::optional(DType::boolean) : std::nullopt;
        case 'f':
            if (bytes == 2) return DType::f16;
            if (bytes == 4) return DType::f32;
            if (bytes == 8) return DType::f64;
            return std::nullopt;
        case 'c':
            if (bytes == 8) return DType::complex64;
            if (bytes == 16) return DType::complex128;
            return std::nullopt;
        case 'i':
        case 'u':
            for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
                                      DType::u32, DType::u64})
                if (bits(dtype) == 8 * bytes && is_signed(dtype) == (kind == 'i')) return dtype;
            return std::nullopt;
        default:
            return std::nullopt;
    }
}

ElementFormat parse_descr(const std::string& descr) {
    const auto unsupported = [&] {
        fail("element type '{}' is not supported: expected numbers, booleans or strings", descr);
    };
    if (descr.size() < 3 || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) unsupported();
    const char kind = descr[1];
    int64_t count = 0;
    const char* last = descr.data() + descr.size();
    const auto [end, error] = std::from_chars(descr.data() + 2, last, count);
    if (error != std::errc() || end != last || count < 0 || count > (1 << 24)) unsupported();

    const bool swapped = descr[0] == '>';
    ElementFormat format;
    if (kind == 'S' || kind == 'U') {
        const bool wide = kind == 'U';
        format = {DType::string, static_cast<size_t>(count) * (wide ? 4 : 1), wide && swapped ? size_t{4} : 0,
                  wide};
    } else if (const std::optional<DType> dtype = number_type(kind, count)) {
        const auto bytes = static_cast<size_t>(count);
        const size_t unit = kind == 'c' ? bytes / 2 : bytes;
        format = {*dtype, bytes, swapped && unit > 1 ? unit : 0, false};
    } else {
        unsupported();
    }
    return format;
}

void append_utf8(std::string& text, uint32_t code) {
    require(code < 0x110000 && (code < 0xD800 || code > 0xDFFF),
            "a string holds the invalid code point {:#x}", code);
    const auto continuation = [&](int shift) {
        text += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
    };
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xC0U | (code >> 6));
        continuation(0);
    } else if (code < 0x10000) {
        text += static_cast<char>(0xE0U | (code >> 12));
        continuation(6);
        continuation(0);
    } else {
        text += static_cast<char>(0xF0U | (code >> 18));
        continuation(12);
        continuation(6);
        continuation(0);
    }
}

std::u32string from_utf8(const std::string& text) {
    std::u32string codes;
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<uint8_t>(text[i]);
        const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        const bool starts = lead < 0x80 || (lead >= 0xC0 && lead < 0xF8);
        require(starts && i + length <= text.size(), "a string is not valid UTF-8, which .npy files need");
        char32_t code = length == 1 ? lead : lead & (0x7FU >> length);
        for (size_t k = 1; k < length; ++k) code = (code << 6) | (static_cast<uint8_t>(text[i + k]) & 0x3FU);
        codes.push_back(code);
        i += length;
    }
    return codes;
}

std::string decode_text(const char* data, const ElementFormat& format) {
    std::string text;
    if (!format.wide_text) {
        text.assign(data, format.bytes);
        while (!text.empty() && text.back() == '\0') text.pop_back();
        return text;
    }
    size_t length = format.bytes / 4;
    std::vector<uint32_t> codes(length);
    if (length > 0) std::memcpy(codes.data(), data, format.bytes);
    while (length > 0 && codes[length - 1] == 0) --length;
    for (size_t i = 0; i < length; ++i) append_utf8(text, codes[i]);
    return text;
}

// Position in the file (column-major) of every element in row-major order.
std::vector<int64_t> fortran_positions(const Shape& shape) {
    const int64_t count = element_count(shape);
    std::vector<int64_t> strides(shape.size());
    int64_t stride = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        strides[axis] = stride;
        stride *= shape[axis];
    }
    std::vector<int64_t> positions(static_cast<size_t>(count));
    Shape index(shape.size(), 0);
    int64_t position = 0;
    for (int64_t& entry : positions) {
        entry = position;
        for (size_t axis = shape.size(); axis-- > 0;) {
            position += strides[axis];
            if (++index[axis] < shape[axis]) break;
            position -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    return positions;
}

class Reader {
  public:
    explicit Reader(const std::filesystem::path& path)
        : stream_(std::make_unique<std::ifstream>(path, std::ios::binary)) {
        require(stream_->good(), "cannot open the file: {}", std::strerror(errno));
        std::error_code error;
        require(!std::filesystem::is_directory(path, error), "this is a directory, not a file");
        left_ = std::filesystem::file_size(path, error);
        require(!error, "cannot read the file: {}", error.message());
    }

    //! What was unpacked.
    explicit Reader(std::span<const std::byte> bytes)
        : stream_(std::make_unique<std::istringstream>(
              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()))),
          left_(bytes.size()) {}

    //! From here on only `bytes` bytes from `offset` on are seen.
    void seek(uintmax_t offset, uintmax_t bytes) {
        stream_->seekg(0, std::ios::end);
        const auto size = static_cast<uintmax_t>(stream_->tellg());
        require(offset <= size && bytes <= size - offset, "the file is truncated");
        stream_->seekg(static_cast<std::streamoff>(offset));
        left_ = bytes;
    }

    uintmax_t left() const { return left_; }

    void read(void* data, size_t bytes) {
        require(bytes <= left_, "the file is truncated: {} bytes are left where {} should follow", left_,
                bytes);
        stream_->read(static_cast<char*>(data), static_cast<std::streamsize>(bytes));
        require(static_cast<size_t>(stream_->gcount()) == bytes, "cannot read the file");
        left_ -= bytes;
    }

  private:
    std::unique_ptr<std::istream> stream_;
    uintmax_t left_ = 0;
};

Header read_header(Reader& reader) {
    char magic[8];
    require(reader.left() >= sizeof(magic), "not a .npy file: it has only {} bytes", reader.left());
    reader.read(magic, sizeof(magic));
    require(std::string_view(magic, kMagic.size()) == kMagic,
            "not a .npy file: it does not start with \\x93NUMPY");
    const int version = magic[6];
    require(version >= 1 && version <= 3, "version {} of the .npy format is not supported", version);
    uint8_t length[4] = {};
    reader.read(length, version == 1 ? 2 : 4);
    const size_t size =
        length[0] | (length[1] << 8) | (length[2] << 16) | (static_cast<size_t>(length[3]) << 24);
    require(size <= kLargestHeader, "the header claims {} bytes", size);
    std::string text(size, '\0');
    reader.read(text.data(), size);
    return HeaderParser(text).parse();
}

Tensor read_elements(Reader& reader, const Header& header) {
    const ElementFormat format = parse_descr(header.descr);
    const int64_t count = element_count(header.shape);
    // Checked before anything is allocated: a damaged header must not ask for the moon.
    size_t bytes = 0;
    require(!__builtin_mul_overflow(static_cast<size_t>(count), format.bytes, &bytes),
            "shape {} has too many elements", to_string(header.shape));
    require(bytes <= reader.left(), "the file is truncated: shape {} needs {} bytes, {} are there",
            to_string(header.shape), bytes, reader.left());

    std::vector<std::string> texts;
    Tensor tensor;
    char* data = nullptr;
    std::vector<char> raw_text;
    if (format.dtype == DType::string) {
        require(static_cast<uintmax_t>(count) <= (uintmax_t{1} << 28), "{} strings are too many", count);
        raw_text.resize(bytes);
        data = raw_text.data();
    } else {
        tensor = Tensor(format.dtype, header.shape);
        data = static_cast<char*>(tensor.raw_mutable());
    }
    if (bytes > 0) reader.read(data, bytes);
    if (format.swap_unit > 0)
        for (size_t i = 0; i + format.swap_unit <= bytes; i += format.swap_unit)
            std::reverse(data + i, data + i + format.swap_unit);

    const bool transposed = header.fortran_order && header.shape.size() > 1 && count > 0;
    const std::vector<int64_t> positions =
        transposed ? fortran_positions(header.shape) : std::vector<int64_t>();
    const auto source = [&](int64_t i) {
        return data + static_cast<size_t>(transposed ? positions[static_cast<size_t>(i)] : i) * format.bytes;
    };
    if (format.dtype == DType::string) {
        for (int64_t i = 0; i < count; ++i) texts.push_back(decode_text(source(i), format));
        return Tensor::strings(header.shape, std::move(texts));
    }
    if (!transposed) return tensor;
    Tensor result(format.dtype, header.shape);
    char* target = static_cast<char*>(result.raw_mutable());
    for (int64_t i = 0; i < count; ++i, target += format.bytes) std::memcpy(target, source(i), format.bytes);
    return result;
}

constexpr uint32_t kDeflated = 8;  // among zip's methods

// A .npz file is a zip archive. Its directory is at the end and says where everything is.
class Archive {
  public:
    struct Entry {
        std::string name;
        uint32_t method = 0, checksum = 0;
        uintmax_t offset = 0;            // of the entry's own header
        uintmax_t bytes = 0, whole = 0;  // of its content, as stored and unpacked
    };

    explicit Archive(Reader& reader) : reader_(reader), size_(reader.left()) {}

    std::vector<Entry> entries() {
        // The end record has 22 bytes and a comment, which NumPy never writes.
        constexpr uintmax_t kEnd = 22;
        require(size_ >= kEnd, "not a .npz file: it has only {} bytes", size_);
        const std::string end = at(size_ - kEnd, kEnd);
        require(end.starts_with("PK\5\6"), "not a .npz file, or a truncated one");
        uintmax_t position = number(end, 16, 4);
        std::vector<Entry> found(number(end, 10, 2));
        for (Entry& entry : found) {
            const std::string fixed = at(position, 46);
            require(fixed.starts_with("PK\1\2"), "the directory of the .npz file is damaged");
            const size_t name_bytes = number(fixed, 28, 2);
            const size_t extra_bytes = number(fixed, 30, 2);
            entry.method = static_cast<uint32_t>(number(fixed, 10, 2));
            entry.checksum = static_cast<uint32_t>(number(fixed, 16, 4));
            entry.bytes = number(fixed, 20, 4);
            entry.whole = number(fixed, 24, 4);
            entry.offset = number(fixed, 42, 4);
            entry.name = at(position + 46, name_bytes);
            require(entry.bytes != 0xFFFFFFFF && entry.offset != 0xFFFFFFFF,
                    ".npz files over 4 GB are not supported: use .npy files");
            position += 46 + name_bytes + extra_bytes + number(fixed, 32, 2);
        }
        return found;
    }

    //! Moves the reader to the content of an entry.
    void open(const Entry& entry) {
        const std::string fixed = at(entry.offset, 30);
        require(fixed.starts_with("PK\3\4"), "the .npz file is damaged at '{}'", entry.name);
        reader_.seek(entry.offset + 30 + number(fixed, 26, 2) + number(fixed, 28, 2), entry.bytes);
    }

    //! The content of an entry that is open and deflated.
    std::vector<std::byte> unpacked(const Entry& entry) {
        std::vector<std::byte> packed(entry.bytes);
        reader_.read(packed.data(), packed.size());
        // Deflate packs a thousand to one at best: what claims more is not believed.
        require(entry.whole / 1100 <= entry.bytes, "the .npz file is damaged at '{}'", entry.name);
        std::vector<std::byte> content = inflate_raw(packed, entry.whole + 1);
        require(content.size() == entry.whole && zip_checksum(content) == entry.checksum,
                "the .npz file is damaged at '{}'", entry.name);
        return content;
    }

  private:
    std::string at(uintmax_t offset, size_t bytes) {
        std::string text(bytes, '\0');
        reader_.seek(offset, bytes);
        reader_.read(text.data(), bytes);
        return text;
    }

    static size_t number(const std::string& text, size_t offset, size_t bytes) {
        size_t value = 0;
        for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<uint8_t>(text[offset + i]);
        return value;
    }

    Reader& reader_;
    uintmax_t size_;
};

std::string descr_of(DType dtype) {
    if (dtype == DType::boolean) return "|b1";
    const int bytes = bits(dtype) / 8;
    char kind = is_signed(dtype) ? 'i' : 'u';
    if (is_float(dtype)) kind = 'f';
    if (dtype == DType::complex64 || dtype == DType::complex128) kind = 'c';
    return fmt::format("{}{}{}", bytes == 1 ? '|' : '<', kind, bytes);
}

DType storable(DType dtype) {
    switch (dtype) {
        case DType::i4:
        case DType::i2:
            return DType::i8;
        case DType::u4:
        case DType::u2:
            return DType::u8;
        case DType::bf16:
        case DType::f8e4m3fn:
        case DType::f8e4m3fnuz:
        case DType::f8e5m2:
        case DType::f8e5m2fnuz:
        case DType::f8e8m0:
        case DType::f4e2m1:
            return DType::f32;
        default:
            return dtype;
    }
}

void write_header(OutputFile& file, const std::string& descr, const Shape& shape) {
    std::string dims;
    for (const int64_t dim : shape) dims += fmt::format("{}, ", dim);
    std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
    // The data starts at a multiple of 64, so that others can map it.
    constexpr size_t kPrefix = 10;
    text.append(63 - (kPrefix + text.size()) % 64, ' ');
    text += '\n';
    const char prefix[4] = {1, 0, static_cast<char>(text.size() & 0xFFU),
                            static_cast<char>(text.size() >> 8)};
    file.write(kMagic);
    file.write(prefix, sizeof(prefix));
    file.write(text);
}

void write_strings(OutputFile& file, const Tensor& tensor) {
    std::vector<std::u32string> rows;
    size_t width = 1;
    for (const std::string& text : tensor.as_strings()) {
        rows.push_back(from_utf8(text));
        width = std::max(width, rows.back().size());
    }
    write_header(file, fmt::format("<U{}", width), tensor.shape());
    for (std::u32string& row : rows) {
        row.resize(width, U'\0');
        file.write(row.data(), width * sizeof(char32_t));
    }
}

}  // namespace

Tensor read_npy(const std::filesystem::path& path) {
    try {
        Reader reader(path);
        const Header header = read_header(reader);
        return read_elements(reader, header);
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

std::map<std::string, Tensor> read_npz(const std::filesystem::path& path) {
    try {
        Reader reader(path);
        Archive archive(reader);
        std::map<std::string, Tensor> arrays;
        for (const Archive::Entry& entry : archive.entries()) {
            require(entry.method == 0 || entry.method == kDeflated, "array '{}' is packed by method {}",
                    entry.name, entry.method);
            archive.open(entry);
            const std::string name =
                entry.name.ends_with(".npy") ? entry.name.substr(0, entry.name.size() - 4) : entry.name;
            if (entry.method == 0) {
                const Header header = read_header(reader);
                arrays[name] = read_elements(reader, header);
            } else {
                Reader unpacked(archive.unpacked(entry));
                const Header header = read_header(unpacked);
                arrays[name] = read_elements(unpacked, header);
            }
        }
        return arrays;
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

void write_npy(const Tensor& tensor, const std::filesystem::path& path) {
    OutputFile file(path);
    if (tensor.dtype() == DType::string) {
        write_strings(file, tensor);
    } else {
        const DType dtype = storable(tensor.dtype());
        const Tensor stored = dtype == tensor.dtype() ? tensor : tensor.converted(dtype);
        write_header(file, descr_of(dtype), stored.shape());
        if (stored.bytes() > 0) file.write(stored.raw(), stored.bytes());
    }
    file.commit();
}

}  // namespace kilter
