// Datasets, transforms and the loader for Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "data/text_inputs.h"
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

nb::dict to_dict(Label label) {
    nb::dict entries;
    for (auto& [name, tensor] : label) entries[name.c_str()] = to_python(std::move(tensor));
    return entries;
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
    for (Label& label : batch->labels) labels.append(to_dict(std::move(label)));
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

//! A dataset with the transforms of its samples, one sample at a time.
class Samples {
  public:
    Samples(std::unique_ptr<Dataset> dataset, Transforms transforms)
        : dataset_(std::move(dataset)), transforms_(std::move(transforms)) {}
    int64_t size() const { return dataset_->size(); }

    nb::tuple sample(int64_t index) const {
        if (index < 0 || index >= size())
            throw nb::index_error(("there is no sample " + std::to_string(index)).c_str());
        Sample sample;
        {
            const nb::gil_scoped_release unlocked;
            sample = dataset_->sample(index);
            for (const auto& transform : transforms_) transform->apply(sample);
        }
        nb::list inputs;
        for (Tensor& tensor : sample.inputs) inputs.append(to_python(std::move(tensor)));
        return nb::make_tuple(inputs, to_dict(std::move(sample.label)));
    }

  private:
    std::unique_ptr<Dataset> dataset_;
    Transforms transforms_;
};

std::vector<int32_t> token_ids(const WordPiece& pieces, const std::string& text) {
    std::vector<int32_t> ids;
    for (const Token& token : pieces.tokens(text)) ids.push_back(token.id);
    return ids;
}

// ids, mask and types of one sequence.
nb::list encoded(const WordPiece& pieces, const std::string& first, const std::string& second,
                 int64_t length) {
    const TextInputs inputs({}, length, length);
    const TextSequence sequence = encode(pieces, first, second, length);
    nb::list list;
    for (Tensor& tensor : inputs.inputs(sequence, pieces.pad(), 0)) list.append(to_python(std::move(tensor)));
    return list;
}

// What transforms make of labels alone: the post-processing of configurations.
nb::list transform_labels(const nb::list& labels, const nb::list& steps, const std::string& framework) {
    const Transforms transforms = to_transforms(steps, framework);
    nb::list changed;
    for (Label& label : to_labels(labels)) {
        Sample sample;
        sample.label = std::move(label);
        for (const auto& transform : transforms) transform->apply(sample);
        changed.append(to_dict(std::move(sample.label)));
    }
    return changed;
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
    nb::class_<Samples>(module, "Samples")
        .def_prop_ro("size", &Samples::size)
        .def("sample", &Samples::sample, "index"_a);
    module.def(
        "make_samples",
        [](nb::handle dataset, const nb::list& steps, const std::string& framework) {
            return new Samples(make_dataset(to_component(dataset, "dataset")),
                               to_transforms(steps, framework));
        },
        "dataset"_a, "transforms"_a, "framework"_a);
    nb::class_<WordPiece>(module, "WordPiece")
        .def(nb::init<std::string, bool>(), "vocabulary"_a, "lower_case"_a)
        .def("ids", &token_ids, "text"_a)
        .def("encode", &encoded, "first"_a, "second"_a, "length"_a);
    module.def("transform_labels", &transform_labels, "labels"_a, "transforms"_a, "framework"_a);
    module.def("transform", &transform, "inputs"_a, "transforms"_a, "framework"_a, "index"_a);
    module.def("dataset_names", &dataset_names);
    module.def("transform_names", &transform_names);
}

}  // namespace kilter::python
