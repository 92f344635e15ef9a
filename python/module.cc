// The extension module kilter._kilter: a model on arrays that are exchanged without copies.
// python/kilter/__init__.py gives it its Python face; here every array comes with the name of its element type.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kilter/base/error.h"
#include "kilter/formats/load.h"
#include "kilter/formats/onnx.h"
#include "kilter/version.h"
#include "session.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using kilter::python::describe;
using kilter::python::ProgramSession;
using kilter::python::Session;

Session* load_file(const std::string& path, int threads, bool optimize, std::vector<std::string> inputs,
                   std::vector<std::string> outputs, std::string signature,
                   std::map<std::string, kilter::Shape> shapes) {
    const nb::gil_scoped_release unlocked;
    const kilter::LoadOptions options{
        std::move(inputs), std::move(outputs), std::move(signature), {shapes.begin(), shapes.end()}};
    return new Session(kilter::load_model(path, options), threads, optimize);
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
            // Names from a damaged model need not be text.
            const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
                message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
            PyErr_SetObject(error_type.ptr(), text.ptr());
        }
    });

    nb::class_<ProgramSession>(module, "ProgramSession")
        .def_prop_ro("inputs",
                     [](const ProgramSession& session) { return describe(session.program().inputs()); })
        .def_prop_ro("outputs",
                     [](const ProgramSession& session) { return describe(session.program().outputs()); })
        .def("run", &ProgramSession::run, "inputs"_a)
        .def("inspect", &ProgramSession::inspect, "inputs"_a)
        .def(
            "bench",
            [](const ProgramSession& session, int64_t batch,
               const std::map<std::string, kilter::Shape>& shapes, int instances, double seconds,
               int64_t iterations) {
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
            [](const ProgramSession& session, int64_t batch,
               const std::map<std::string, kilter::Shape>& shapes) {
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
            "batch"_a, "shapes"_a);
    nb::class_<Session, ProgramSession>(module, "Session")
        .def(
            "save",
            [](const Session& session, const std::string& path, bool external_data) {
                const nb::gil_scoped_release unlocked;
                kilter::onnx::write(session.model(), path, {.external_data = external_data});
            },
            "path"_a, "external_data"_a)
        .def("to_bytes",
             [](const Session& session) {
                 std::string content;
                 {
                     const nb::gil_scoped_release unlocked;
                     content = session.serialized();
                 }
                 return nb::bytes(content.data(), content.size());
             })
        .def_prop_ro("metadata",
                     [](const Session& session) {
                         nb::dict entries;
                         for (const auto& [key, value] : session.model().metadata)
                             entries[key.c_str()] = value;
                         return entries;
                     })
        .def(
            "graph_text",
            [](const Session& session, bool optimized) {
                return kilter::print(optimized ? session.program().graph() : session.model().graph);
            },
            "optimized"_a);

    kilter::python::bind_config(module);
    kilter::python::bind_quantization(module);
    kilter::python::bind_tuning(module);
    kilter::python::bind_strategies(module);
    kilter::python::bind_metrics(module);
    kilter::python::bind_data(module);
    kilter::python::bind_tensorflow(module);
    kilter::python::bind_hosted(module);
    module.def("load_file", &load_file, "path"_a, "threads"_a, "optimize"_a, "inputs"_a, "outputs"_a,
               "signature"_a, "shapes"_a);
    module.def("load_bytes", &load_bytes, "content"_a, "threads"_a, "optimize"_a);
}
