#include "arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kilter/base/error.h"

namespace kilter::python {
namespace {

using InputArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

DType dtype_named(const std::string& name) {
    const std::optional<DType> dtype = parse_dtype(name);
    if (!dtype) throw Error("unknown element type '" + name + "'");
    return *dtype;
}

// The tensor reads the array's memory and keeps the array alive, also when the last copy dies on another thread.
Tensor to_tensor(InputArray array, const std::string& dtype) {
    Shape shape;
    for (size_t axis = 0; axis < array.ndim(); ++axis)
        shape.push_back(static_cast<int64_t>(array.shape(axis)));
    const void* data = array.data();
    std::shared_ptr<const void> keeper(new InputArray(std::move(array)), [](const InputArray* kept) {
        const nb::gil_scoped_acquire gil;
        delete kept;
    });
    return Tensor::mapped(dtype_named(dtype), std::move(shape), data, std::move(keeper));
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
        if (input.size() == 3) {
            tensors.push_back(
                Tensor::strings(nb::cast<Shape>(input[1]), nb::cast<std::vector<std::string>>(input[0])));
        } else {
            tensors.push_back(to_tensor(nb::cast<InputArray>(input[0]), nb::cast<std::string>(input[1])));
        }
    }
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

nb::tuple to_python(Tensor tensor) {
    if (tensor.dtype() == DType::string) {
        nb::list strings;
        for (const std::string& text : tensor.as_strings())
            strings.append(nb::bytes(text.data(), text.size()));
        return nb::make_tuple(strings, nb::tuple(nb::cast(tensor.shape())), "string");
    }
    if (bits(tensor.dtype()) < 8)
        tensor = tensor.converted(is_float(tensor.dtype())    ? DType::f32
                                  : is_signed(tensor.dtype()) ? DType::i8
                                                              : DType::u8);
    if (!tensor.writable()) tensor = tensor.clone();
    static char nothing = 0;
    auto* owned = new Tensor(std::move(tensor));
    const nb::capsule owner(owned, [](void* kept) noexcept { delete static_cast<Tensor*>(kept); });
    const std::vector<size_t> shape(owned->shape().begin(), owned->shape().end());
    void* data = owned->size() > 0 ? owned->raw_mutable() : &nothing;
    nb::ndarray<nb::numpy> array(data, shape.size(), shape.data(), owner, nullptr,
                                 exchange_type(owned->dtype()));
    return nb::make_tuple(array, std::string(name(owned->dtype())));
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
