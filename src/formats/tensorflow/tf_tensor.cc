#include "formats/tensorflow/tf_tensor.h"

#include <cstring>

#include "base/convert.h"
#include "base/fail.h"
#include "formats/protobuf/fields.h"
#include "formats/tensorflow/messages.h"
#include "formats/tensorflow/schema.h"

namespace kilter::tensorflow {
namespace {

using protobuf::Fields;
using protobuf::Message;
using TensorField = field::Tensor;

// A file may give fewer values than the shape has elements: the last one is repeated. More than this is no filled
// weight of a real model, and a few bytes must not be able to ask for any amount of memory.
constexpr size_t kLargestFill = 256U << 20U;

uint32_t value_field(DType dtype) {
    switch (dtype) {
        case DType::f32:
            return TensorField::float_val;
        case DType::f64:
            return TensorField::double_val;
        case DType::i64:
            return TensorField::int64_val;
        case DType::boolean:
            return TensorField::bool_val;
        case DType::f16:
        case DType::bf16:
            return TensorField::half_val;
        case DType::u32:
            return TensorField::uint32_val;
        case DType::u64:
            return TensorField::uint64_val;
        case DType::complex64:
            return TensorField::scomplex_val;
        case DType::complex128:
            return TensorField::dcomplex_val;
        case DType::f8e5m2:
        case DType::f8e4m3fn:
            return TensorField::float8_val;
        default:
            return TensorField::int_val;
    }
}

template <class Visit>
void each_field(std::string_view message, uint32_t number, Visit visit) {
    for (Fields fields(message); fields.next();) {
        if (fields.number() == number)
            visit(fields);
        else
            fields.skip();
    }
}

// The elements that the typed field gives, as the bytes of a tensor.
std::string stored_values(std::string_view message, DType dtype) {
    const uint32_t wanted = value_field(dtype);
    std::string values;
    if (dtype == DType::f32 || dtype == DType::f64 || dtype == DType::complex64 ||
        dtype == DType::complex128) {
        const size_t width = dtype == DType::f32 || dtype == DType::complex64 ? 4 : 8;
        each_field(message, wanted, [&](Fields& fields) { values += fields.fixed(width); });
    } else if (wanted == TensorField::float8_val) {
        each_field(message, wanted, [&](Fields& fields) { values += fields.view(); });
    } else {
        std::vector<int64_t> numbers;
        each_field(message, wanted, [&](Fields& fields) { fields.append_integers(numbers); });
        const auto width = static_cast<size_t>(bits(dtype) / 8);
        for (int64_t number : numbers) {
            if (dtype == DType::boolean) number = number != 0 ? 1 : 0;
            values.append(reinterpret_cast<const char*>(&number), width);  // little-endian: the low bytes
        }
    }
    return values;
}

Tensor filled_up(std::string_view message, DType dtype, const Shape& shape) {
    const std::string values = stored_values(message, dtype);
    const size_t bytes = byte_count(dtype, element_count(shape));
    const auto width = static_cast<size_t>(bits(dtype) / 8);
    require(values.size() % width == 0, "has {} bytes of values, not a multiple of {}", values.size(), width);
    require(bytes <= kLargestFill || bytes <= values.size(), "claims {} elements but stores {}",
            to_string(shape), values.size() / width);
    Tensor tensor(dtype, shape);
    if (bytes == 0) return tensor;
    auto* to = static_cast<char*>(tensor.raw_mutable());
    const size_t stored = std::min(values.size(), bytes);
    std::memcpy(to, values.data(), stored);
    if (stored == 0) {
        std::memset(to, 0, bytes);
    } else {
        for (size_t done = stored; done < bytes; done += width)
            std::memcpy(to + done, to + stored - width, width);
    }
    return tensor;
}

Tensor strings_of(std::string_view message, const Shape& shape) {
    std::vector<std::string> values;
    each_field(message, TensorField::string_val, [&](Fields& fields) { values.push_back(fields.text()); });
    const int64_t count = element_count(shape);
    require(static_cast<size_t>(count) <= std::max(values.size(), kLargestFill / sizeof(std::string)),
            "claims {} strings but stores {}", count, values.size());
    const std::string last = values.empty() ? std::string() : values.back();
    values.resize(static_cast<size_t>(count), last);
    return Tensor::strings(shape, std::move(values));
}

}  // namespace

TfTensor::TfTensor(Tensor tensor) : TfTensor(tensor, TfType::of(tensor.dtype())) {}

TfTensor::TfTensor(Tensor tensor, TfType type)
    : type_(type), shape_(tensor.shape()), tensor_(std::move(tensor)) {
    require(type.dtype() == tensor_.dtype() && type.code != 0,
            "a tensor of {} cannot be stored as TensorFlow's {}", name(tensor_.dtype()), to_string(type));
}

TfTensor TfTensor::parse(std::string_view message, std::shared_ptr<const void> keeper) {
    TfTensor result;
    result.shape_ = TfShape(std::vector<int64_t>{});
    for (Fields fields(message); fields.next();) {
        if (fields.number() == TensorField::dtype)
            result.type_ = {fields.integer()};
        else if (fields.number() == TensorField::tensor_shape)
            result.shape_ = read_shape(fields.view());
        else
            fields.skip();
    }
    result.source_ = message;
    result.keeper_ = std::move(keeper);
    return result;
}

size_t TfTensor::filled_bytes() const {
    if (keeper_ == nullptr || !shape_.dims.has_value() || type_.dtype() == DType::undefined ||
        type_.dtype() == DType::string)
        return 0;
    const size_t bytes = byte_count(type_.dtype(), element_count(*shape_.dims));
    return bytes > source_.size() ? bytes : 0;
}

Tensor TfTensor::decode() const {
    if (keeper_ == nullptr) return tensor_;
    const DType dtype = type_.dtype();
    require(dtype != DType::undefined, "holds elements of {}, which kilter cannot hold", to_string(type_));
    require(shape_.dims.has_value(), "a tensor has no shape");
    const Shape& shape = *shape_.dims;
    const int64_t count = element_count(shape);
    if (dtype == DType::string) return strings_of(source_, shape);
    std::optional<std::string_view> content;
    each_field(source_, TensorField::tensor_content, [&](Fields& fields) { content = fields.view(); });
    if (!content || content->empty()) return filled_up(source_, dtype, shape);
    const size_t expected = byte_count(dtype, count);
    require(content->size() == expected, "has {} bytes of data, but {} elements of {} need {}",
            content->size(), to_string(shape), to_string(type_), expected);
    return Tensor::mapped(dtype, shape, content->data(), keeper_);
}

void TfTensor::write(Message& parent, uint32_t field) const {
    if (keeper_ != nullptr) return parent.blob(field, source_.data(), source_.size());
    Message message;
    message.integer(TensorField::dtype, type_.code);
    message.message(TensorField::tensor_shape, write_shape(shape_));
    if (tensor_.dtype() == DType::string) {
        for (const std::string& text : tensor_.as_strings()) message.bytes(TensorField::string_val, text);
    } else if (tensor_.size() > 0) {
        message.blob(TensorField::tensor_content, tensor_.raw(), tensor_.bytes());
    }
    parent.message(field, message);
}

}  // namespace kilter::tensorflow
