#include "data/numpy.h"

#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/npy.h"
#include "data/labels.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

// Dimensions of a sample, without the first one, which counts samples.
bool fits_sample(std::span<const int64_t> sample, const Port& port) {
    if (!port.type.shape) return true;
    const auto& dims = *port.type.shape;
    if (dims.size() != sample.size() + 1) return false;
    for (size_t i = 0; i < sample.size(); ++i)
        if (dims[i + 1].known() && dims[i + 1].value != sample[i]) return false;
    return true;
}

[[noreturn]] void misfit(const Port& port, const Shape& shape, std::string_view where) {
    throw Error(fmt::format("{}: an array of shape {} does not fit input '{}', which is {}", where,
                            to_string(shape), port.name, to_string(port.type)),
                "the first axis counts the samples");
}

// Element `index` along the first axis, in place.
Tensor row_of(const std::shared_ptr<const Tensor>& array, int64_t index) {
    const size_t bytes = array->bytes() / static_cast<size_t>(array->dim(0));
    return Tensor::mapped(array->dtype(), {array->shape().begin() + 1, array->shape().end()},
                          static_cast<const char*>(array->raw()) + static_cast<size_t>(index) * bytes, array);
}

std::vector<int64_t> classes_of(const fs::path& labels, int64_t samples, const std::string& where) {
    const LabelList list = read_labels(labels);
    require(static_cast<int64_t>(list.classes.size()) == samples, "{}: {} labels for the {} samples of {}",
            labels.string(), list.classes.size(), samples, where);
    return list.classes;
}

//! One array for each input, the first axis counts the samples.
class Arrays : public Dataset {
  public:
    Arrays(std::string where, std::vector<Tensor> arrays, std::vector<std::string> origins, Ports inputs,
           Tensor labels)
        : where_(std::move(where)) {
        for (size_t i = 0; i < arrays.size(); ++i) {
            const Tensor& array = arrays[i];
            require(array.rank() > 0, "{}: a single number is no set of samples", origins[i]);
            if (i < inputs.size() && !fits_sample(std::span(array.shape()).subspan(1), inputs[i]))
                misfit(inputs[i], array.shape(), origins[i]);
            require(array.dim(0) == arrays[0].dim(0), "{} has {} samples, {} has {}", origins[0],
                    arrays[0].dim(0), origins[i], array.dim(0));
            require(array.dtype() != DType::string, "{}: samples of strings are not supported", origins[i]);
            arrays_.push_back(std::make_shared<const Tensor>(array));
        }
        if (labels.empty()) return;
        require(labels.rank() > 0 && labels.dim(0) == size() && labels.dtype() != DType::string,
                "{}: labels are {} {}, expected one for each of {} samples", where_, name(labels.dtype()),
                to_string(labels.shape()), size());
        if (is_integer(labels.dtype())) labels = labels.converted(DType::i64);
        labels_ = std::make_shared<const Tensor>(std::move(labels));
    }

    int64_t size() const override { return arrays_[0]->dim(0); }

    Sample sample(int64_t index) const override {
        Sample sample;
        for (const auto& array : arrays_) sample.inputs.push_back(row_of(array, index));
        if (labels_) sample.label["label"] = row_of(labels_, index);
        sample.name = fmt::format("{}: sample {}", where_, index);
        return sample;
    }

  private:
    std::string where_;
    std::vector<std::shared_ptr<const Tensor>> arrays_;
    std::shared_ptr<const Tensor> labels_;
};

// Which arrays feed which input, and which one holds labels.
struct Sorted {
    std::vector<Tensor> inputs;
    std::vector<std::string> origins;
    Tensor labels;
};

Sorted sort_arrays(std::map<std::string, Tensor> named, const std::string& where, Ports ports) {
    Sorted sorted;
    for (const Port& port : ports) {
        const auto found = named.find(port.name);
        if (found == named.end()) {
            std::vector<std::string> names;
            for (const auto& [key, tensor] : named) names.push_back(key);
            fail("{}: no array for input '{}', only {}", where, port.name, fmt::join(names, ", "));
        }
        sorted.inputs.push_back(std::move(found->second));
        sorted.origins.push_back(fmt::format("{} ({})", where, port.name));
        named.erase(found);
    }
    for (const char* key : {"labels", "label"}) {
        const auto found = named.find(key);
        if (found == named.end()) continue;
        sorted.labels = std::move(found->second);
        named.erase(found);
    }
    for (auto& [key, tensor] : named) {
        require(ports.empty(), "{}: the model has no input '{}'", where, key);
        sorted.origins.push_back(fmt::format("{} ({})", where, key));
        sorted.inputs.push_back(std::move(tensor));
    }
    require(!sorted.inputs.empty(), "{}: there are no arrays", where);
    return sorted;
}

//! Files with one sample each.
class ArrayFiles : public Dataset {
  public:
    ArrayFiles(std::vector<fs::path> files, std::vector<int64_t> classes, Ports inputs)
        : files_(std::move(files)), classes_(std::move(classes)), inputs_(inputs.begin(), inputs.end()) {}

    int64_t size() const override { return static_cast<int64_t>(files_.size()); }

    Sample sample(int64_t index) const override {
        const fs::path& file = files_.at(static_cast<size_t>(index));
        Sample sample;
        sample.name = file.string();
        if (lower_extension(file) == ".npz") {
            Sorted sorted = sort_arrays(read_npz(file), sample.name, inputs_);
            sample.inputs = std::move(sorted.inputs);
            if (!sorted.labels.empty())
                sample.label["label"] = is_integer(sorted.labels.dtype())
                                            ? sorted.labels.converted(DType::i64)
                                            : std::move(sorted.labels);
        } else {
            sample.inputs.push_back(read_npy(file));
        }
        for (size_t i = 0; i < inputs_.size(); ++i)
            sample.inputs[i] = one(sample.inputs[i], inputs_[i], sample.name);
        if (!classes_.empty()) sample.label = class_label(classes_[static_cast<size_t>(index)]);
        return sample;
    }

  private:
    // A file may hold the sample itself, or a batch of one.
    static Tensor one(const Tensor& array, const Port& port, const std::string& where) {
        Shape shape = array.shape();
        if (port.type.shape && shape.size() == port.type.shape->size() && shape[0] == 1)
            shape.erase(shape.begin());
        if (!fits_sample(shape, port)) misfit(port, array.shape(), where);
        require(array.dtype() != DType::string, "{}: samples of strings are not supported", where);
        return array.reshaped(std::move(shape));
    }

    std::vector<fs::path> files_;
    std::vector<int64_t> classes_;
    std::vector<Port> inputs_;
};

Tensor read_label_array(const fs::path& labels, int64_t samples, const std::string& where) {
    if (labels.empty()) return {};
    if (labels.extension() == ".npy") return read_npy(labels);
    return Tensor::of<int64_t>({samples}, classes_of(labels, samples, where));
}

}  // namespace

DatasetPointer from_arrays(std::map<std::string, Tensor> arrays, const std::string& where, Ports inputs,
                           const fs::path& labels) {
    Sorted sorted = sort_arrays(std::move(arrays), where, inputs);
    if (!labels.empty()) {
        const Tensor& first = sorted.inputs[0];
        sorted.labels = read_label_array(labels, first.rank() > 0 ? first.dim(0) : 0, where);
    }
    return std::make_unique<Arrays>(where, std::move(sorted.inputs), std::move(sorted.origins), inputs,
                                    std::move(sorted.labels));
}

DatasetPointer open_arrays(const fs::path& path, Ports inputs, const fs::path& labels) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
        std::vector<fs::path> files = files_in(path, [](const fs::path& file) {
            return lower_extension(file) == ".npy" || lower_extension(file) == ".npz";
        });
        require(!files.empty(), "{}: there are no .npy or .npz files", path.string());
        const bool named = lower_extension(files[0]) == ".npz";
        require(named || inputs.size() <= 1,
                "{}: a folder of .npy files can only feed a model with one input, this one has {}",
                path.string(), inputs.size());
        std::vector<int64_t> classes;
        if (!labels.empty()) classes = classes_of(labels, static_cast<int64_t>(files.size()), path.string());
        return std::make_unique<ArrayFiles>(std::move(files), std::move(classes), inputs);
    }
    if (lower_extension(path) == ".npz") return from_arrays(read_npz(path), path.string(), inputs, labels);
    require(inputs.size() <= 1, "{}: a .npy file can only feed a model with one input, this one has {}",
            path.string(), inputs.size());
    Tensor array = read_npy(path);
    Tensor classes = read_label_array(labels, array.rank() > 0 ? array.dim(0) : 0, path.string());
    return std::make_unique<Arrays>(path.string(), std::vector{std::move(array)}, std::vector{path.string()},
                                    inputs, std::move(classes));
}

DatasetPointer make_numpy(const Settings& settings, Ports inputs) {
    settings.allow_keys({"root", "labels"});
    // Transforms may follow that bring the arrays into the shape of the inputs: only their names count here.
    std::vector<Port> names(inputs.begin(), inputs.end());
    for (Port& port : names) port.type.shape.reset();
    return open_arrays(existing_path(settings, "root"), names,
                       settings.has("labels") ? existing_path(settings, "labels") : fs::path());
}

}  // namespace kilter
