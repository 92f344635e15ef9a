#include "arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "kilter/base/error.h"

namespace kilter::python {
namespace {

using InputArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

DType dtype_named(const std::string& name) {
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype) throw Error("unknown element type '" + name + "'");
    return *dtype;
}

// Types of fewer bits than a byte travel as one byte for each element, whose low bits are the element.
Tensor packed(const Tensor& bytes, DType dtype) {
    Tensor tensor(dtype, bytes.shape());
    const int per_byte = 8 / bits(dtype);
    const auto* from = static_cast<const uint8_t*>(bytes.raw());
    auto* to = static_cast<uint8_t*>(tensor.raw_mutable());
    std::fill_n(to, tensor.bytes(), uint8_t{0});
    for (int64_t i = 0; i < tensor.size(); ++i) {
        const int low = from[i] & ((1 << bits(dtype)) - 1);
        to[i / per_byte] = static_cast<uint8_t>(to[i / per_byte] | low << (i % per_byte * bits(dtype)));
    }
    return tensor;
}

Tensor unpacked(const Tensor& tensor) {
    const DType bits_only = bits(tensor.dtype()) == 4 ? DType::u4 : DType::u2;
    return Tensor::view(bits_only, tensor.shape(), tensor.raw()).converted(DType::u8);
}

// The tensor reads the array's memory and keeps the array alive, also when the last copy dies on another thread.
Tensor to_tensor(InputArray array, DType dtype) {
    Shape shape;
    for (size_t axis = 0; axis < array.ndim(); ++axis)
        shape.push_back(static_cast<int64_t>(array.shape(axis)));
    const void* data = array.data();
    std::shared_ptr<const void> keeper(new InputArray(std::move(array)), [](const InputArray* kept) {
        const nb::gil_scoped_acquire gil;
        delete kept;
    });
    Tensor tensor =
        Tensor::mapped(bits(dtype) < 8 ? DType::u8 : dtype, std::move(shape), data, std::move(keeper));
    return bits(dtype) < 8 ? packed(tensor, dtype) : tensor;
}

nb::dlpack::dtype exchange_type(DType dtype) {
    using Code = nb::dlpack::dtype_code;
    Code code = is_signed(dtype) ? Code::Int : Code::UInt;
    if (dtype == DType::f16 || dtype == DType::f32 || dtype == DType::f64) code = Code::Float;
    if (dtype == DType::boolean) code = Code::Bool;
    if (dtype == DType::complex64 || dtype == DType::complex128) code = Code::Complex;
    // Floats that NumPy does not have travel as unsigned integers of their size.
    if (is_float(dtype) && code != Code::Float) code = Code::UInt;
    return {static_cast<uint8_t>(code), static_cast<uint8_t>(bits(dtype)), 1};
}

}  // namespace

std::vector<Tensor> to_tensors(const nb::list& inputs) {
    std::vector<Tensor> tensors;
    for (const nb::handle item : inputs) {
        const auto input = nb::cast<nb::tuple>(item);
        const DType dtype = dtype_named(nb::cast<std::string>(input[input.size() - 1]));
        if (dtype == DType::string) {
            tensors.push_back(
                Tensor::strings(nb::cast<Shape>(input[1]), nb::cast<std::vector<std::string>>(input[0])));
        } else if (dtype == DType::sequence) {
            tensors.push_back(Tensor::sequence(to_tensors(nb::cast<nb::list>(input[0]))));
        } else if (dtype == DType::nothing) {
            tensors.push_back(Tensor::nothing());
        } else {
            tensors.push_back(to_tensor(nb::cast<InputArray>(input[0]), dtype));
        }
    }
    return tensors;
}

std::vector<Tensor> to_own_tensors(const nb::list& inputs) {
    std::vector<Tensor> tensors = to_tensors(inputs);
    for (Tensor& tensor : tensors) tensor = tensor.clone();
    return tensors;
}

std::vector<Label> to_labels(const nb::list& labels) {
    std::vector<Label> result;
    for (const nb::handle item : labels) {
        Label label;
        for (const auto& [name, array] : nb::cast<nb::dict>(item)) {
            nb::list one;
            one.append(array);
            label.emplace(nb::cast<std::string>(name), to_tensors(one).front());
        }
        result.push_back(std::move(label));
    }
    return result;
}

std::vector<Label> to_own_labels(const nb::list& labels) {
    std::vector<Label> result = to_labels(labels);
    for (Label& label : result)
        for (auto& [name, tensor] : label) tensor = tensor.clone();
    return result;
}

nb::tuple to_python(Tensor tensor) {
    if (tensor.dtype() == DType::string) {
        nb::list strings;
        for (const std::string& text : tensor.as_strings())
            strings.append(nb::bytes(text.data(), text.size()));
        return nb::make_tuple(strings, nb::tuple(nb::cast(tensor.shape())), "string");
    }
    if (tensor.dtype() == DType::sequence) {
        nb::list items;
        for (const Tensor& item : tensor.as_sequence()) items.append(to_python(item));
        return nb::make_tuple(items, "sequence");
    }
    if (tensor.dtype() == DType::nothing) return nb::make_tuple(nb::none(), "nothing");
    const std::string element(name(tensor.dtype()));
    if (bits(tensor.dtype()) < 8) tensor = unpacked(tensor);
    if (!tensor.writable()) tensor = tensor.clone();
    static char nothing = 0;
    auto* owned = new Tensor(std::move(tensor));
    const nb::capsule owner(owned, [](void* kept) noexcept { delete static_cast<Tensor*>(kept); });
    const std::vector<size_t> shape(owned->shape().begin(), owned->shape().end());
    void* data = owned->size() > 0 ? owned->raw_mutable() : &nothing;
    nb::ndarray<nb::numpy> array(data, shape.size(), shape.data(), owner, nullptr,
                                 exchange_type(owned->dtype()));
    return nb::make_tuple(array, element);
}

nb::list describe(const std::vector<Port>& ports) {
    nb::list list;
    for (const Port& port : ports) {
        nb::object shape = nb::none();
        if (port.type.shape) {
            nb::list dims;
            for (const Dim& dim : *port.type.shape) {
                if (dim.known())
                    dims.append(dim.value);
                else if (dim.symbol.empty())
                    dims.append(nb::none());
                else
                    dims.append(dim.symbol);
            }
            shape = nb::tuple(dims);
        }
        list.append(nb::make_tuple(port.name, std::string(name(port.type.dtype)), shape));
    }
    return list;
}

}  // namespace kilter::python
