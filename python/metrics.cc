// Metrics for Python: made by name, fed with outputs and labels, asked for their result.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "kilter/metrics/metric.h"
#include "session.h"
#include "settings.h"

namespace kilter::python {
namespace {

using namespace nb::literals;

void update(Metric& metric, const nb::list& outputs, const nb::list& labels) {
    const std::vector<Tensor> tensors = to_tensors(outputs);
    const std::vector<Label> truth = to_labels(labels);
    const nb::gil_scoped_release unlocked;
    metric.update(tensors, truth);
}

}  // namespace

void bind_metrics(nb::module_& module) {
    nb::class_<Metric>(module, "Metric")
        .def("reset", &Metric::reset)
        .def("update", &update, "outputs"_a, "labels"_a)
        .def("result", &Metric::result, nb::call_guard<nb::gil_scoped_release>())
        .def("per_sample", &Metric::per_sample)
        .def("bounds", &Metric::bounds)
        .def_prop_ro("higher_is_better", &Metric::higher_is_better)
        .def_prop_ro("needs_reference", &Metric::needs_reference);
    module.def(
        "make_metric",
        [](const std::string& name, const nb::dict& settings) {
            return make_metric({name, to_settings(settings)});
        },
        "name"_a, "settings"_a);
    module.def("metric_names", &metric_names);
}

}  // namespace kilter::python
