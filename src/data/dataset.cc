#include "data/dataset.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/npy.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

std::string lower_extension(const fs::path& path) {
    std::string extension = path.extension().string();
    for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return extension;
}

bool is_image(const fs::path& path) {
    const std::string extension = lower_extension(path);
    return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

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

bool normalizes(const DataOptions& options) {
    return options.scale || !options.mean.empty() || !options.std.empty();
}

float entry(const std::vector<float>& values, int64_t channel, float otherwise) {
    if (values.empty()) return otherwise;
    return values.size() == 1 ? values[0] : values[static_cast<size_t>(channel)];
}

// (x · scale - mean) / std along axis 1 of [samples, channels, …], or the last axis for nhwc.
Tensor normalized(const Tensor& array, const DataOptions& options) {
    Tensor result = array.converted(DType::f32).clone();
    const std::span<float> values = result.as_mutable<float>();
    const bool last = options.layout == Layout::nhwc;
    const int axis = array.rank() < 2 ? -1 : last ? array.rank() - 1 : 1;
    const int64_t channels = axis < 0 ? 1 : array.dim(axis);
    int64_t inner = 1;
    for (int i = axis + 1; axis >= 0 && i < array.rank(); ++i) inner *= array.dim(i);
    for (const auto* list : {&options.mean, &options.std})
        require(list->size() <= 1 || static_cast<int64_t>(list->size()) == channels,
                "{} means or deviations were given for {} channels", list->size(), channels);
    for (size_t i = 0; i < values.size(); ++i) {
        const int64_t channel = static_cast<int64_t>(i) / inner % channels;
        values[i] = (values[i] * options.scale.value_or(1) - entry(options.mean, channel, 0)) /
                    entry(options.std, channel, 1);
    }
    return result;
}

// An array as a model's input takes it; nothing is converted unless it was asked for.
Tensor prepared(Tensor array, const Port& port, const DataOptions& options, const std::string& where) {
    if (port.type.dtype == DType::f32 && normalizes(options)) return normalized(array, options);
    if (array.dtype() == port.type.dtype) return array;
    throw Error(fmt::format("{}: elements are {}, input '{}' expects {}", where, name(array.dtype()),
                            port.name, name(port.type.dtype)),
                port.type.dtype == DType::f32
                    ? "--scale 1 converts them, --scale 1/255 also maps pixels to 0 … 1"
                    : "");
}

Tensor slice(const Tensor& array, int64_t first, int64_t count) {
    Shape shape = array.shape();
    const size_t row = array.bytes() / static_cast<size_t>(std::max<int64_t>(shape[0], 1));
    shape[0] = count;
    Tensor part(array.dtype(), std::move(shape));
    std::memcpy(part.raw_mutable(), static_cast<const char*>(array.raw()) + static_cast<size_t>(first) * row,
                part.bytes());
    return part;
}

Tensor stack(const std::vector<Tensor>& samples) {
    Shape shape = samples[0].shape();
    shape.insert(shape.begin(), static_cast<int64_t>(samples.size()));
    Tensor result(samples[0].dtype(), std::move(shape));
    auto* target = static_cast<char*>(result.raw_mutable());
    for (const Tensor& sample : samples) {
        require(sample.shape() == samples[0].shape() && sample.dtype() == samples[0].dtype(),
                "samples of shapes {} and {} cannot be stacked: use --batch 1", to_string(samples[0].shape()),
                to_string(sample.shape()));
        std::memcpy(target, sample.raw(), sample.bytes());
        target += sample.bytes();
    }
    return result;
}

//! One array for each input, the first axis counts the samples.
class Arrays : public Dataset {
  public:
    Arrays(const std::vector<Port>& inputs, std::vector<Tensor> arrays, std::vector<std::string> origins,
           DataOptions options)
        : inputs_(inputs),
          arrays_(std::move(arrays)),
          origins_(std::move(origins)),
          options_(std::move(options)) {
        for (size_t i = 0; i < inputs_.size(); ++i) {
            const Tensor& array = arrays_[i];
            if (array.rank() == 0 || !fits_sample(std::span(array.shape()).subspan(1), inputs_[i]))
                misfit(inputs_[i], array.shape(), origins_[i]);
            require(array.dim(0) == arrays_[0].dim(0), "{} has {} samples, {} has {}", origins_[0],
                    arrays_[0].dim(0), origins_[i], array.dim(0));
            require(array.dtype() != DType::string, "{}: samples of strings are not supported", origins_[i]);
        }
        if (size() > 0) read(0, 1);  // says now that an element type does not fit
    }

    int64_t size() const override { return arrays_[0].dim(0); }

    std::vector<Tensor> read(int64_t first, int64_t count) const override {
        std::vector<Tensor> batch;
        for (size_t i = 0; i < inputs_.size(); ++i)
            batch.push_back(prepared(slice(arrays_[i], first, count), inputs_[i], options_, origins_[i]));
        return batch;
    }

  private:
    std::vector<Port> inputs_;
    std::vector<Tensor> arrays_;
    std::vector<std::string> origins_;
    DataOptions options_;
};

//! Files with one sample of a single input each.
class Files : public Dataset {
  public:
    Files(Port input, std::vector<fs::path> files) : input_(std::move(input)), files_(std::move(files)) {}

    int64_t size() const override { return static_cast<int64_t>(files_.size()); }

    std::vector<Tensor> read(int64_t first, int64_t count) const override {
        std::vector<Tensor> samples;
        for (int64_t i = first; i < first + count; ++i)
            samples.push_back(sample(files_[static_cast<size_t>(i)]));
        return {stack(samples)};
    }

  protected:
    virtual Tensor sample(const fs::path& file) const = 0;
    Port input_;
    std::vector<fs::path> files_;
};

class ArrayFiles : public Files {
  public:
    ArrayFiles(Port input, std::vector<fs::path> files, DataOptions options)
        : Files(std::move(input), std::move(files)), options_(std::move(options)) {}

  private:
    Tensor sample(const fs::path& file) const override {
        Tensor array = read_npy(file);
        // A file may hold the sample itself, or a batch of one.
        Shape shape = array.shape();
        if (input_.type.shape && shape.size() == input_.type.shape->size() && shape[0] == 1)
            shape.erase(shape.begin());
        if (!fits_sample(shape, input_)) misfit(input_, array.shape(), file.string());
        Shape batch = shape;
        batch.insert(batch.begin(), 1);
        return prepared(array.reshaped(batch), input_, options_, file.string()).reshaped(shape);
    }

    DataOptions options_;
};

class Images : public Files {
  public:
    Images(Port input, std::vector<fs::path> files, const DataOptions& options)
        : Files(std::move(input), std::move(files)) {
        require(input_.type.dtype == DType::f32, "images can only feed an input of f32, '{}' is {}",
                input_.name, name(input_.type.dtype));
        const auto& shape = input_.type.shape;
        require(!shape || shape->size() == 4, "images can only feed an input with 4 dimensions, '{}' is {}",
                input_.name, to_string(input_.type));
        const auto known = [&](size_t axis) {
            return shape && (*shape)[axis].known() ? (*shape)[axis].value : 0;
        };
        const auto could_be_channels = [](int64_t size) { return size == 1 || size == 3; };
        layout_ = options.layout.value_or(
            !could_be_channels(known(1)) && could_be_channels(known(3)) ? Layout::nhwc : Layout::nchw);
        const size_t row_axis = layout_ == Layout::nchw ? 2 : 1;
        const int64_t channels = known(layout_ == Layout::nchw ? 1 : 3);
        channels_ = channels > 0 ? channels : 3;
        if (!could_be_channels(channels_))
            throw Error(fmt::format("input '{}' is {}: images have 1 or 3 channels", input_.name,
                                    to_string(input_.type)),
                        "--layout nchw or nhwc says which axis holds the channels");
        height_ = options.size > 0 ? options.size : known(row_axis);
        width_ = options.size > 0 ? options.size : known(row_axis + 1);
        if (height_ <= 0 || width_ <= 0)
            throw Error(fmt::format("input '{}' leaves the size of images open", input_.name),
                        "--size 224 says how large they shall be");
        for (const auto& [wanted, axis] : {std::pair(height_, row_axis), std::pair(width_, row_axis + 1)})
            require(known(axis) == 0 || known(axis) == wanted, "input '{}' is {}, --size asks for {}",
                    input_.name, to_string(input_.type), wanted);
        const int64_t crop = std::max(height_, width_);
        short_side_ = options.short_side > 0 ? options.short_side : (crop * 256 + 112) / 224;
        require(short_side_ >= crop, "images scaled to a short side of {} cannot be cropped to {}",
                short_side_, crop);
        normalization_.scale = options.scale.value_or(1);
        for (const auto* list : {&options.mean, &options.std})
            require(list->size() <= 1 || static_cast<int64_t>(list->size()) == channels_,
                    "{} means or deviations were given for {} channels", list->size(), channels_);
        for (int64_t c = 0; c < channels_; ++c) {
            normalization_.mean[static_cast<size_t>(c)] = entry(options.mean, c, 0);
            normalization_.std[static_cast<size_t>(c)] = entry(options.std, c, 1);
        }
    }

  private:
    Tensor sample(const fs::path& file) const override {
        const Image image = resize_short_side(read_image(file), short_side_);
        return to_tensor(center_crop(image, width_, height_), channels_, layout_, normalization_);
    }

    Layout layout_ = Layout::nchw;
    int64_t channels_ = 3, height_ = 0, width_ = 0, short_side_ = 0;
    Normalization normalization_;
};

std::unique_ptr<Dataset> open_folder(const fs::path& folder, const std::vector<Port>& inputs,
                                     const DataOptions& options) {
    std::vector<fs::path> arrays;
    std::vector<fs::path> images;
    std::error_code error;
    for (const auto& file : fs::directory_iterator(folder, error)) {
        if (lower_extension(file.path()) == ".npy") arrays.push_back(file.path());
        if (is_image(file.path())) images.push_back(file.path());
    }
    require(!error, "{}: cannot read the folder: {}", folder.string(), error.message());
    require(arrays.empty() != images.empty(), "{}: {}", folder.string(),
            arrays.empty() ? "the folder holds neither .npy files nor JPEG or PNG images"
                           : "the folder holds .npy files and images; use one kind");
    require(inputs.size() == 1, "{}: a folder can only feed a model with one input, this one has {}",
            folder.string(), inputs.size());
    std::ranges::sort(arrays);
    std::ranges::sort(images);
    if (!images.empty()) return std::make_unique<Images>(inputs[0], std::move(images), options);
    return std::make_unique<ArrayFiles>(inputs[0], std::move(arrays), options);
}

std::unique_ptr<Dataset> from_named(std::map<std::string, Tensor> named, const std::string& where,
                                    const std::vector<Port>& inputs, const DataOptions& options) {
    std::vector<Tensor> arrays;
    std::vector<std::string> origins;
    for (const Port& port : inputs) {
        const auto found = named.find(port.name);
        if (found == named.end()) {
            std::vector<std::string> names;
            for (const auto& [key, tensor] : named) names.push_back(key);
            fail("{}: no array for input '{}', only {}", where, port.name, fmt::join(names, ", "));
        }
        arrays.push_back(std::move(found->second));
        origins.push_back(fmt::format("{} ({})", where, port.name));
        named.erase(found);
    }
    if (!named.empty()) fail("{}: the model has no input '{}'", where, named.begin()->first);
    return std::make_unique<Arrays>(inputs, std::move(arrays), std::move(origins), options);
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const std::vector<std::string>& sources,
                                      const std::vector<Port>& inputs, const DataOptions& options) {
    require(!inputs.empty(), "the model has no inputs");
    require(!sources.empty(), "no data was given");
    std::error_code error;
    if (sources.size() == 1) {
        const fs::path path = sources[0];
        if (fs::is_directory(path, error)) return open_folder(path, inputs, options);
        if (lower_extension(path) == ".npz" && fs::exists(path, error))
            return from_named(read_npz(path), path.string(), inputs, options);
        if (inputs.size() == 1 && (fs::exists(path, error) || sources[0].find('=') == std::string::npos))
            return std::make_unique<Arrays>(inputs, std::vector{read_npy(path)}, sources, options);
    }
    std::map<std::string, Tensor> named;
    for (const std::string& source : sources) {
        const size_t position = source.rfind('=');
        if (position == std::string::npos || position == 0)
            throw Error(fmt::format("'{}': expected NAME=FILE.npy, because the model has {} inputs", source,
                                    inputs.size()));
        named[source.substr(0, position)] = read_npy(source.substr(position + 1));
    }
    return from_named(std::move(named), "the data", inputs, options);
}

}  // namespace kilter
