// The extension module kilter._kilter: a model on arrays that are exchanged without copies.
// python/kilter/__init__.py gives it its Python face; here every array comes with the name of its element type.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kilter/base/error.h"
#include "kilter/engine/bench.h"
#include "kilter/engine/program.h"
#include "kilter/formats/onnx.h"
#include "kilter/version.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using kilter::DType;
using kilter::Tensor;

using InputArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

DType dtype_named(const std::string& name) {
    const std::optional<DType> dtype = kilter::parse_dtype(name);
    if (!dtype) throw kilter::Error("unknown element type '" + name + "'");
    return *dtype;
}

// The tensor reads the array's memory and keeps the array alive, also when the last copy dies on another thread.
Tensor to_tensor(InputArray array, const std::string& dtype) {
    kilter::Shape shape;
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
    Code code = kilter::is_signed(dtype) ? Code::Int : Code::UInt;
    if (dtype == DType::f16 || dtype == DType::f32 || dtype == DType::f64) code = Code::Float;
    if (dtype == DType::boolean) code = Code::Bool;
    if (dtype == DType::complex64 || dtype == DType::complex128) code = Code::Complex;
    // Floats that NumPy does not have travel as unsigned integers of their size.
    if (kilter::is_float(dtype) && code != Code::Float) code = Code::UInt;
    return {static_cast<uint8_t>(code), static_cast<uint8_t>(kilter::bits(dtype)), 1};
}

// (array, element type): the array owns the tensor.
nb::tuple to_python(Tensor tensor) {
    if (tensor.dtype() == DType::string) {
        nb::list strings;
        for (const std::string& text : tensor.as_strings())
            strings.append(nb::bytes(text.data(), text.size()));
        return nb::make_tuple(strings, nb::tuple(nb::cast(tensor.shape())), "string");
    }
    if (kilter::bits(tensor.dtype()) < 8)
        tensor = tensor.converted(kilter::is_float(tensor.dtype())    ? DType::f32
                                  : kilter::is_signed(tensor.dtype()) ? DType::i8
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

// (name, element type, shape); the shape is None when even the rank is open, its entries numbers, names or None.
nb::list describe(const std::vector<kilter::Port>& ports) {
    nb::list list;
    for (const kilter::Port& port : ports) {
        nb::object shape = nb::none();
        if (port.type.shape) {
            nb::list dims;
            for (const kilter::Dim& dim : *port.type.shape) {
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

//! The model as loaded, for save(), and the program made from it.
class Session {
  public:
    Session(kilter::Model model, int threads, bool optimize)
        : model_(std::move(model)),
          program_(kilter::clone(model_), {.threads = threads, .optimize = optimize}) {}

    const kilter::Model& model() const { return model_; }
    const kilter::Program& program() const { return program_; }

    nb::list run(const nb::list& inputs) const {
        std::vector<Tensor> tensors = to_tensors(inputs);
        std::vector<Tensor> outputs;
        {
            const nb::gil_scoped_release unlocked;
            outputs = program_.run(tensors);
            tensors.clear();
        }
        nb::list list;
        for (Tensor& output : outputs) list.append(to_python(std::move(output)));
        return list;
    }

    kilter::BenchResult bench(int64_t batch, const std::map<std::string, kilter::Shape>& shapes,
                              int instances, double seconds, int64_t iterations) const {
        const nb::gil_scoped_release unlocked;
        const auto resolved = kilter::resolve_shapes(program_.inputs(), {batch, shapes});
        const std::vector<Tensor> inputs = kilter::made_up_inputs(program_.inputs(), resolved);
        return kilter::bench(program_, inputs, {instances, seconds, iterations, {}});
    }

    std::vector<kilter::StepReport> profile(int64_t batch,
                                            const std::map<std::string, kilter::Shape>& shapes) const {
        const nb::gil_scoped_release unlocked;
        const auto resolved = kilter::resolve_shapes(program_.inputs(), {batch, shapes});
        return program_.profile(kilter::made_up_inputs(program_.inputs(), resolved));
    }

  private:
    // Every input is (array, element type) or (strings, shape, "string").
    static std::vector<Tensor> to_tensors(const nb::list& inputs) {
        std::vector<Tensor> tensors;
        for (const nb::handle item : inputs) {
            const auto input = nb::cast<nb::tuple>(item);
            if (input.size() == 3) {
                tensors.push_back(Tensor::strings(nb::cast<kilter::Shape>(input[1]),
                                                  nb::cast<std::vector<std::string>>(input[0])));
            } else {
                tensors.push_back(to_tensor(nb::cast<InputArray>(input[0]), nb::cast<std::string>(input[1])));
            }
        }
        return tensors;
    }

    kilter::Model model_;
    kilter::Program program_;
};

Session* load_file(const std::string& path, int threads, bool optimize) {
    const nb::gil_scoped_release unlocked;
    return new Session(kilter::onnx::read(path), threads, optimize);
}

Session* load_bytes(const nb::bytes& content, int threads, bool optimize) {
    const std::span bytes(static_cast<const std::byte*>(content.data()), content.size());
    const nb::gil_scoped_release unlocked;
    return new Session(kilter::onnx::read_bytes(bytes), threads, optimize);
}

}  // namespace

NB_MODULE(_kilter, module) {
    module.attr("__version__") = KILTER_VERSION;

    static nb::object error_type = nb::steal(PyErr_NewException("kilter.Error", PyExc_ValueError, nullptr));
    module.attr("Error") = error_type;
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const kilter::Error& error) {
            const std::string message =
                error.hint().empty() ? error.what() : error.what() + ("\n" + error.hint());
            PyErr_SetString(error_type.ptr(), message.c_str());
        }
    });

    nb::class_<Session>(module, "Session")
        .def_prop_ro("inputs", [](const Session& session) { return describe(session.program().inputs()); })
        .def_prop_ro("outputs", [](const Session& session) { return describe(session.program().outputs()); })
        .def("run", &Session::run, "inputs"_a)
        .def(
            "bench",
            [](const Session& session, int64_t batch, const std::map<std::string, kilter::Shape>& shapes,
               int instances, double seconds, int64_t iterations) {
                const kilter::BenchResult result =
                    session.bench(batch, shapes, instances, seconds, iterations);
                nb::dict report;
                report["runs"] = result.milliseconds.size();
                report["median_ms"] = result.median();
                report["p90_ms"] = result.percentile(90);
                report["min_ms"] = result.percentile(0);
                report["runs_per_second"] = result.runs_per_second();
                return report;
            },
            "batch"_a, "shapes"_a, "instances"_a, "seconds"_a, "iterations"_a)
        .def(
            "profile",
            [](const Session& session, int64_t batch, const std::map<std::string, kilter::Shape>& shapes) {
                nb::list list;
                for (const kilter::StepReport& step : session.profile(batch, shapes)) {
                    nb::dict entry;
                    entry["name"] = step.name;
                    entry["op"] = step.op;
                    entry["kernel"] = step.kernel;
                    entry["shape"] = step.shape;
                    entry["milliseconds"] = step.milliseconds;
                    list.append(entry);
                }
                return list;
            },
            "batch"_a, "shapes"_a)
        .def(
            "save",
            [](const Session& session, const std::string& path, bool external_data) {
                const nb::gil_scoped_release unlocked;
                kilter::onnx::write(session.model(), path, {.external_data = external_data});
            },
            "path"_a, "external_data"_a)
        .def(
            "graph_text",
            [](const Session& session, bool optimized) {
                return kilter::print(optimized ? session.program().graph() : session.model().graph);
            },
            "optimized"_a);

    module.def("load_file", &load_file, "path"_a, "threads"_a, "optimize"_a);
    module.def("load_bytes", &load_bytes, "content"_a, "threads"_a, "optimize"_a);
}
