#include "formats/onnx/tensor_reader.h"

#include <charconv>
#include <cstring>

#include "base/convert.h"
#include "base/fail.h"
#include "formats/onnx/schema.h"
#include "formats/protobuf/fields.h"
#include "graph/onnx_dtype.h"

namespace kilter::onnx {

using protobuf::Fields;

namespace {

using field_ = field::Tensor;

// Which of the typed fields holds elements of `dtype`.
uint32_t data_field(DType dtype) {
    switch (dtype) {
        case DType::f32:
        case DType::complex64:
            return field_::float_data;
        case DType::f64:
        case DType::complex128:
            return field_::double_data;
        case DType::i64:
            return field_::int64_data;
        case DType::u32:
        case DType::u64:
            return field_::uint64_data;
        case DType::string:
            return field_::string_data;
        default:
            return field_::int32_data;
    }
}

void check_bytes(size_t found, DType dtype, const Shape& shape) {
    const size_t expected = byte_count(dtype, element_count(shape));
    require(found == expected, "has {} bytes of data, but {} elements of {} need {}", found, to_string(shape),
            name(dtype), expected);
}

// float_data and double_data: one packed run is used in place, anything else is gathered.
Tensor read_fixed(std::string_view message, DType dtype, Shape shape,
                  const std::shared_ptr<const void>& keeper) {
    const uint32_t wanted = data_field(dtype);
    const size_t width = wanted == field_::float_data ? 4 : 8;
    std::vector<std::string_view> runs;
    size_t total = 0;
    for (Fields fields(message); fields.next();) {
        if (fields.number() != wanted) {
            fields.skip();
            continue;
        }
        runs.push_back(fields.fixed(width));
        total += runs.back().size();
    }
    check_bytes(total, dtype, shape);
    if (runs.size() == 1) return Tensor::mapped(dtype, std::move(shape), runs[0].data(), keeper);
    Tensor tensor(dtype, std::move(shape));
    auto* to = static_cast<char*>(tensor.raw_mutable());
    for (const std::string_view run : runs) {
        std::memcpy(to, run.data(), run.size());
        to += run.size();
    }
    return tensor;
}

// int32_data, int64_data, uint64_data. Elements narrower than a byte come as the bytes they are packed in.
Tensor read_integers(std::string_view message, DType dtype, Shape shape) {
    const uint32_t wanted = data_field(dtype);
    std::vector<int64_t> values;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == wanted)
            fields.append_integers(values);
        else
            fields.skip();
    }
    const size_t width = bits(dtype) < 8 ? 1 : static_cast<size_t>(bits(dtype) / 8);
    check_bytes(values.size() * width, dtype, shape);
    Tensor tensor(dtype, std::move(shape));
    auto* to = static_cast<char*>(tensor.raw_mutable());
    for (const int64_t value : values) {
        std::memcpy(to, &value, width);  // little-endian: the low bytes are the element
        to += width;
    }
    if (dtype == DType::boolean)
        for (int64_t i = 0; i < tensor.size(); ++i)
            store_int(dtype, tensor.raw_mutable(), i, values[static_cast<size_t>(i)]);
    return tensor;
}

Tensor read_strings(std::string_view message, Shape shape) {
    std::vector<std::string> values;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field_::string_data)
            values.push_back(fields.text());
        else
            fields.skip();
    }
    require(static_cast<int64_t>(values.size()) == element_count(shape),
            "has {} strings, but its shape is {}", values.size(), to_string(shape));
    return Tensor::strings(std::move(shape), std::move(values));
}

uint64_t parse_number(std::string_view key, std::string_view text) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    require(error == std::errc() && end == text.data() + text.size(),
            "external data: {} must be a number of bytes, found '{}'", key, text);
    return number;
}

// A model may only point at files beside it or below: it must not be able to read anything else of the
// machine.
std::filesystem::path checked_location(const std::string& location) {
    const std::filesystem::path path(location);
    bool leaves = path.is_absolute() || location.empty() || location.find('\0') != std::string::npos;
    for (const auto& part : path) leaves = leaves || part == "..";
    require(!leaves, "external data: '{}' does not name a file in the model's directory", location);
    return path;
}

}  // namespace

bool TensorReader::is_known(std::string_view message) {
    int64_t data_type = 0;
    for (Fields fields(message); fields.next();) {
        if (fields.number() == field_::data_type)
            data_type = fields.integer();
        else
            fields.skip();
    }
    return is_onnx_dtype(data_type);
}

NamedTensor TensorReader::read(std::string_view message) {
    NamedTensor result;
    Shape shape;
    int64_t data_type = 0;
    bool is_external = false;
    std::optional<std::string_view> raw;
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case field_::dims:
                fields.append_integers(shape);
                break;
            case field_::data_type:
                data_type = fields.integer();
                break;
            case field_::name:
                result.name = fields.text();
                break;
            case field_::doc_string:
                result.doc = fields.text();
                break;
            case field_::raw_data:
                raw = fields.view();
                break;
            case field_::data_location:
                is_external = fields.integer() == 1;
                break;
            case field_::segment:
                fail("tensor '{}' is stored in segments, which kilter does not read", result.name);
            case field_::float_data:
            case field_::int32_data:
            case field_::string_data:
            case field_::int64_data:
            case field_::double_data:
            case field_::uint64_data:
            case field_::external_data:
                fields.skip();
                break;
            default:
                fields.keep(result.foreign);
        }
    }
    try {
        require(is_onnx_dtype(data_type), "has element type {}, which kilter does not know", data_type);
        const DType dtype = dtype_from_onnx(data_type);
        if (is_external) {
            result.tensor = external(message, dtype, std::move(shape));
        } else if (dtype == DType::string) {
            require(!raw, "holds strings as raw bytes, which has no meaning");
            result.tensor = read_strings(message, std::move(shape));
        } else if (raw) {
            check_bytes(raw->size(), dtype, shape);
            result.tensor = Tensor::mapped(dtype, std::move(shape), raw->data(), keeper_);
        } else if (data_field(dtype) == field_::float_data || data_field(dtype) == field_::double_data) {
            result.tensor = read_fixed(message, dtype, std::move(shape), keeper_);
        } else {
            result.tensor = read_integers(message, dtype, std::move(shape));
        }
    } catch (const Error& error) {
        throw error.in(fmt::format("tensor '{}'", result.name));
    }
    return result;
}

Tensor TensorReader::external(std::string_view message, DType dtype, Shape shape) {
    std::string location;
    uint64_t offset = 0;
    std::optional<uint64_t> length;
    for (Fields fields(message); fields.next();) {
        if (fields.number() != field_::external_data) {
            fields.skip();
            continue;
        }
        std::string key;
        std::string value;
        for (Fields entry(fields.view()); entry.next();) {
            if (entry.number() == field::Entry::key)
                key = entry.text();
            else if (entry.number() == field::Entry::value)
                value = entry.text();
            else
                entry.skip();
        }
        if (key == "location") location = value;
        if (key == "offset") offset = parse_number(key, value);
        if (key == "length") length = parse_number(key, value);
    }
    require(dtype != DType::string, "external data cannot hold strings");
    require(directory_.has_value(),
            "external data '{}' cannot be found: the model was given as bytes, without a directory",
            location);
    const std::filesystem::path path = checked_location(location);
    std::shared_ptr<const MappedFile>& file = files_[path.string()];
    if (file == nullptr) file = MappedFile::open(*directory_ / path);
    const size_t needed = byte_count(dtype, element_count(shape));
    if (length) check_bytes(*length, dtype, shape);
    const size_t size = file->bytes().size();
    require(offset <= size && needed <= size - offset,
            "external data: {} bytes at offset {} of '{}' are needed, but the file has {} bytes", needed,
            offset, location, size);
    return Tensor::mapped(dtype, std::move(shape), file->bytes().data() + offset, file);
}

NamedTensor TensorReader::read_sparse(std::string_view message) {
    NamedTensor values;
    NamedTensor indices;
    Shape shape;
    for (Fields fields(message); fields.next();) {
        switch (fields.number()) {
            case field::SparseTensor::values:
                values = read(fields.view());
                break;
            case field::SparseTensor::indices:
                indices = read(fields.view());
                break;
            case field::SparseTensor::dims:
                fields.append_integers(shape);
                break;
            default:
                fields.skip();
        }
    }
    try {
        require(!values.tensor.empty() && !indices.tensor.empty(), "values or indices are missing");
        const Tensor& kept = values.tensor;
        require(kept.rank() == 1 && kept.dtype() != DType::string && bits(kept.dtype()) >= 8,
                "the values must be a list of numbers");
        const int64_t count = element_count(shape);
        const size_t bytes = byte_count(kept.dtype(), count);
        // A few stored bytes must not be able to ask for any amount of memory.
        constexpr size_t kAlwaysAllowed = 16U << 20U;
        require(bytes <= kAlwaysAllowed || bytes / 1000 <= kept.bytes(),
                "{} would need {} bytes for {} stored values", to_string(shape), bytes, kept.size());
        const std::vector<int64_t> places = indices.tensor.to_ints();
        const size_t stored = static_cast<size_t>(kept.size());
        const bool linear = indices.tensor.rank() == 1;
        require(places.size() == (linear ? stored : stored * shape.size()), "{} indices do not fit {} values",
                places.size(), stored);
        Tensor dense(kept.dtype(), shape);
        if (bytes > 0) std::memset(dense.raw_mutable(), 0, bytes);
        const auto width = static_cast<size_t>(bits(kept.dtype()) / 8);
        for (size_t i = 0; i < stored; ++i) {
            int64_t place = linear ? places[i] : 0;
            for (size_t axis = 0; axis < shape.size() && !linear; ++axis) {
                const int64_t index = places[i * shape.size() + axis];
                require(index >= 0 && index < shape[axis], "index {} is outside of {}", index,
                        to_string(shape));
                place = place * shape[axis] + index;
            }
            require(place >= 0 && place < count, "index {} is outside of {}", place, to_string(shape));
            std::memcpy(static_cast<char*>(dense.raw_mutable()) + static_cast<size_t>(place) * width,
                        static_cast<const char*>(kept.raw()) + i * width, width);
        }
        values.tensor = std::move(dense);
    } catch (const Error& error) {
        throw error.in(fmt::format("sparse tensor '{}'", values.name));
    }
    return values;
}

}  // namespace kilter::onnx
