#include "kilter/data/open.h"

#include <algorithm>

#include "base/fail.h"
#include "base/npy.h"
#include "data/idx.h"
#include "data/image.h"
#include "data/image_files.h"
#include "data/image_records.h"
#include "data/normalize.h"
#include "data/numpy.h"
#include "data/resize.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

//! Arrays as a model's inputs take them; nothing is converted unless it was asked for.
class FitArrays : public Transform {
  public:
    FitArrays(const std::vector<Port>& inputs, const DataOptions& options)
        : inputs_(inputs),
          normalizes_(options.scale || !options.mean.empty() || !options.std.empty()),
          last_(options.layout == Layout::nhwc),
          normalization_{options.scale.value_or(1), options.mean, options.std} {}

    void apply(Sample& sample) const override {
        for (size_t i = 0; i < inputs_.size(); ++i) {
            Tensor& tensor = sample.inputs[i];
            const DType wanted = inputs_[i].type.dtype;
            if (wanted == DType::f32 && normalizes_) {
                const int axis = tensor.rank() == 0 ? -1 : last_ ? tensor.rank() - 1 : 0;
                tensor = normalize(tensor, axis, normalization_);
            } else if (tensor.dtype() != wanted) {
                throw Error(fmt::format("elements are {}, input '{}' expects {}", name(tensor.dtype()),
                                        inputs_[i].name, name(wanted)),
                            wanted == DType::f32
                                ? "--scale 1 converts them, --scale 1/255 also maps pixels to 0 … 1"
                                : "");
            }
        }
    }

  private:
    std::vector<Port> inputs_;
    bool normalizes_, last_;
    Normalization normalization_;
};

//! Images as a model's only input takes them: scaled, cropped, laid out and normalized.
class FitImage : public Transform {
  public:
    // Sets whose images all have the size a model wants are not scaled unless that was asked for.
    FitImage(const std::vector<Port>& inputs, const DataOptions& options, bool fixed_size)
        : normalization_{options.scale.value_or(1), options.mean, options.std} {
        require(inputs.size() == 1, "images can only feed a model with one input, this one has {}",
                inputs.size());
        const Port& input = inputs[0];
        require(input.type.dtype == DType::f32, "images can only feed an input of f32, '{}' is {}",
                input.name, name(input.type.dtype));
        const auto& shape = input.type.shape;
        require(!shape || shape->size() == 4, "images can only feed an input with 4 dimensions, '{}' is {}",
                input.name, to_string(input.type));
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
            throw Error(fmt::format("input '{}' is {}: images have 1 or 3 channels", input.name,
                                    to_string(input.type)),
                        "--layout nchw or nhwc says which axis holds the channels");
        size_.height = options.size > 0 ? options.size : known(row_axis);
        size_.width = options.size > 0 ? options.size : known(row_axis + 1);
        if (size_.height <= 0 || size_.width <= 0)
            throw Error(fmt::format("input '{}' leaves the size of images open", input.name),
                        "--size 224 says how large they shall be");
        for (const auto& [wanted, axis] :
             {std::pair(size_.height, row_axis), std::pair(size_.width, row_axis + 1)})
            require(known(axis) == 0 || known(axis) == wanted, "input '{}' is {}, --size asks for {}",
                    input.name, to_string(input.type), wanted);
        const int64_t crop = std::max(size_.height, size_.width);
        short_side_ = options.short_side > 0 ? options.short_side
                      : fixed_size           ? crop
                                             : (crop * 256 + 112) / 224;
        require(short_side_ >= crop, "images scaled to a short side of {} cannot be cropped to {}",
                short_side_, crop);
        for (const auto* list : {&options.mean, &options.std})
            require(list->size() <= 1 || static_cast<int64_t>(list->size()) == channels_,
                    "{} means or deviations were given for {} channels", list->size(), channels_);
    }

    void apply(Sample& sample) const override {
        Tensor& image = image_of(sample);
        const Size scaled = with_short_side(image, short_side_);
        image = resize(image, scaled.height, scaled.width, Interpolation::bilinear, Resampler::pillow);
        image = with_channels(center_crop(image, size_), channels_);
        image = layout_ == Layout::nchw ? normalize_to_planes(image, normalization_)
                                        : normalize(image, 2, normalization_);
    }

  private:
    Layout layout_ = Layout::nchw;
    int64_t channels_ = 3, short_side_ = 0;
    Size size_;
    Normalization normalization_;
};

DataSource of_images(DatasetPointer images, const std::vector<Port>& inputs, const DataOptions& options,
                     bool fixed_size = false) {
    DataSource source;
    source.transforms.push_back(std::make_unique<FitImage>(inputs, options, fixed_size));
    source.dataset = std::move(images);
    return source;
}

DataSource of_arrays(DatasetPointer arrays, const std::vector<Port>& inputs, const DataOptions& options) {
    DataSource source;
    source.transforms.push_back(std::make_unique<FitArrays>(inputs, options));
    source.dataset = std::move(arrays);
    return source;
}

// Says now, not at the first batch, that an element type does not fit.
void try_first(const DataSource& source, const std::string& where) {
    if (source.dataset->size() == 0) return;
    Sample sample = source.dataset->sample(0);
    try {
        for (const auto& transform : source.transforms) transform->apply(sample);
    } catch (const Error& error) {
        throw error.in(where);
    }
}

// Records hold their labels; a list beside them would be a second truth.
void refuse_labels(const fs::path& path, const DataOptions& options) {
    require(options.labels.empty(), "{}: the records hold their labels, --labels {} is not used",
            path.string(), options.labels);
}

DataSource of_records(const fs::path& path, const std::vector<Port>& inputs, const DataOptions& options) {
    refuse_labels(path, options);
    const bool rec = lower_extension(path) == ".rec";
    return of_images(rec ? open_rec(path) : open_image_records(path), inputs, options);
}

DataSource open_folder(const fs::path& folder, const std::vector<Port>& inputs, const DataOptions& options) {
    const auto has = [&](const auto& wanted) { return !files_in(folder, wanted).empty(); };
    const bool arrays = has([](const fs::path& file) {
        return lower_extension(file) == ".npy" || lower_extension(file) == ".npz";
    });
    const bool images = has(is_image_name);
    require(!arrays || !images, "{}: the folder holds arrays and images; use one kind", folder.string());
    if (arrays) return of_arrays(open_arrays(folder, inputs, options.labels), inputs, options);
    if (!images && has(is_idx_name)) {
        refuse_labels(folder, options);
        return of_images(make_dataset({"MNIST", {{"root", folder.string()}}}), inputs, options, true);
    }
    if (!images && has(is_tfrecord_name)) return of_records(folder, inputs, options);
    return of_images(open_images(folder, options.labels), inputs, options);
}

DataSource open_file(const fs::path& path, const std::vector<Port>& inputs, const DataOptions& options) {
    if (is_idx_name(path)) return of_images(open_idx(path, options.labels), inputs, options, true);
    if (is_tfrecord_name(path) || lower_extension(path) == ".rec") return of_records(path, inputs, options);
    DataSource source = of_arrays(open_arrays(path, inputs, options.labels), inputs, options);
    try_first(source, path.string());
    return source;
}

}  // namespace

DataSource open_data(const std::vector<std::string>& sources, const std::vector<Port>& inputs,
                     const DataOptions& options) {
    require(!inputs.empty(), "the model has no inputs");
    require(!sources.empty(), "no data was given");
    std::error_code error;
    if (sources.size() == 1) {
        const fs::path path = sources[0];
        if (fs::is_directory(path, error)) return open_folder(path, inputs, options);
        const bool named = sources[0].find('=') != std::string::npos;
        if (fs::exists(path, error) ? inputs.size() == 1 || lower_extension(path) == ".npz"
                                    : inputs.size() == 1 && !named)
            return open_file(path, inputs, options);
    }
    std::map<std::string, Tensor> named;
    for (const std::string& source : sources) {
        const size_t position = source.rfind('=');
        if (position == std::string::npos || position == 0)
            throw Error(fmt::format("'{}': expected NAME=FILE.npy, because the model has {} inputs", source,
                                    inputs.size()));
        named[source.substr(0, position)] = read_npy(source.substr(position + 1));
    }
    for (const auto& entry : named)
        require(std::ranges::any_of(inputs, [&](const Port& port) { return port.name == entry.first; }),
                "the data: the model has no input '{}'", entry.first);
    DataSource source =
        of_arrays(from_arrays(std::move(named), "the data", inputs, options.labels), inputs, options);
    try_first(source, "the data");
    return source;
}

}  // namespace kilter
