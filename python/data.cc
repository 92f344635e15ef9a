// Datasets, transforms and the loader for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kilter/data/loader.h"
#include "session.h"
#include "settings.h"

namespace kilter::python {
namespace {

using namespace nb::literals;

Transforms to_transforms(const nb::list& steps, const std::string& framework) {
    Transforms transforms;
    for (const nb::handle step : steps)
        transforms.push_back(make_transform(to_component(step, "transform"), framework));
    return transforms;
}

nb::list transform(const nb::list& inputs, const nb::list& steps, const std::string& framework,
                   int64_t index) {
    const Transforms transforms = to_transforms(steps, framework);
    Sample sample;
    sample.inputs = to_tensors(inputs);
    sample.index = index;
    {
        const nb::gil_scoped_release unlocked;
        for (const auto& entry : transforms) entry->apply(sample);
    }
    nb::list list;
    for (Tensor& tensor : sample.inputs) list.append(to_python(std::move(tensor)));
    return list;
}

nb::object next_batch(Loader& loader) {
    std::optional<Batch> batch;
    {
        const nb::gil_scoped_release unlocked;
        batch = loader.next();
    }
    if (!batch) return nb::none();
    nb::list inputs;
    for (Tensor& tensor : batch->inputs) inputs.append(to_python(std::move(tensor)));
    nb::list labels;
    for (Label& label : batch->labels) {
        nb::dict entries;
        for (auto& [name, tensor] : label) entries[name.c_str()] = to_python(std::move(tensor));
        labels.append(entries);
    }
    return nb::make_tuple(inputs, labels);
}

Loader* make_loader(nb::handle dataset, const nb::list& steps, const std::string& framework,
                    const Session* model, const nb::dict& given) {
    const Component component = to_component(dataset, "dataset");
    Transforms transforms = to_transforms(steps, framework);
    const Settings settings = to_settings(given);
    LoaderOptions options;
    options.batch_size = settings.get("batch_size", 1);
    options.drop_last = settings.get("drop_last", false);
    options.shuffle = settings.get("shuffle", false);
    options.seed = static_cast<uint64_t>(settings.get("seed", 0));
    options.threads = static_cast<int>(settings.get("threads", 0));
    options.limit = settings.get("limit", 0);
    options.on_error = settings.get("count_errors", false) ? OnError::count : OnError::stop;
    const nb::gil_scoped_release unlocked;
    std::shared_ptr<const Dataset> made = make_dataset(
        component, model ? std::span<const Port>(model->program().inputs()) : std::span<const Port>());
    return new Loader(std::move(made), std::move(transforms), options);
}

}  // namespace

void bind_data(nb::module_& module) {
    nb::class_<Loader>(module, "Loader")
        .def_prop_ro("samples", &Loader::samples)
        .def_prop_ro("errors", &Loader::errors)
        .def("next", &next_batch)
        .def("rewind", &Loader::rewind, nb::call_guard<nb::gil_scoped_release>());
    module.def("make_loader", &make_loader, "dataset"_a, "transforms"_a, "framework"_a, "model"_a.none(),
               "options"_a);
    module.def("transform", &transform, "inputs"_a, "transforms"_a, "framework"_a, "index"_a);
    module.def("dataset_names", &dataset_names);
    module.def("transform_names", &transform_names);
}

}  // namespace kilter::python
