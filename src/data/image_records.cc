#include "data/image_records.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "data/example.h"
#include "data/image.h"
#include "data/records.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

Bytes as_bytes(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

//! Records of several files, one after the other.
class ImageRecords : public Dataset {
  public:
    using Read = Sample (*)(Bytes file, size_t offset);

    ImageRecords(std::vector<RecordFile> files, Read read) : files_(std::move(files)), read_(read) {
        for (const RecordFile& file : files_) size_ += static_cast<int64_t>(file.index.offsets.size());
    }

    int64_t size() const override { return size_; }

    Sample sample(int64_t index) const override {
        auto record = static_cast<size_t>(index);
        size_t number = 0;
        for (; record >= files_.at(number).index.offsets.size(); ++number)
            record -= files_[number].index.offsets.size();
        const RecordFile& file = files_[number];
        const std::string where = fmt::format("{}: record {}", file.name, record);
        try {
            if (!file.index.damage.empty() && record + 1 == file.index.offsets.size())
                throw Error(file.index.damage, "what follows in the file cannot be read");
            Sample sample = read_(file.content->bytes(), file.index.offsets[record]);
            sample.name = where;
            return sample;
        } catch (const Error& error) {
            throw error.in(where);
        }
    }

  private:
    std::vector<RecordFile> files_;
    Read read_;
    int64_t size_ = 0;
};

Sample read_example(Bytes file, size_t offset) { return parse_image_example(tfrecord_at(file, offset)); }

Sample read_rec(Bytes file, size_t offset) {
    std::vector<std::byte> joined;
    return parse_image_rec(recordio_at(file, offset, joined));
}

const Feature* find(const Example& example, std::string_view key) {
    const auto found = example.find(key);
    return found == example.end() ? nullptr : &found->second;
}

// A 0 or 1 for each box; all 0 when the record does not say.
void add_flags(const Example& example, std::string_view key, size_t count, Tensor& flags) {
    const Feature* given = find(example, key);
    require(!given || given->ints.empty() || given->ints.size() == count, "{} has {} values for {} boxes",
            key, given ? given->ints.size() : 0, count);
    std::vector<int64_t> values(count, 0);
    if (given && !given->ints.empty()) values.assign(given->ints.begin(), given->ints.end());
    flags = Tensor::of<int64_t>({static_cast<int64_t>(count)}, values);
}

// What the TensorFlow detection tools write: corners in parts of the image's sides.
void add_boxes(const Example& example, const Tensor& image, Label& label) {
    const Feature* sides[4];
    const char* keys[] = {"image/object/bbox/ymin", "image/object/bbox/xmin", "image/object/bbox/ymax",
                          "image/object/bbox/xmax"};
    for (size_t i = 0; i < 4; ++i) {
        sides[i] = find(example, keys[i]);
        if (!sides[i]) return;
        require(sides[i]->floats.size() == sides[0]->floats.size(), "{} has {} values, {} has {}", keys[i],
                sides[i]->floats.size(), keys[0], sides[0]->floats.size());
    }
    const size_t count = sides[0]->floats.size();
    std::vector<float> boxes;
    for (size_t i = 0; i < count; ++i)
        for (size_t side = 0; side < 4; ++side)
            boxes.push_back(sides[side]->floats[i] * static_cast<float>(image.dim(side % 2 == 0 ? 0 : 1)));
    label["boxes"] = Tensor::of<float>({static_cast<int64_t>(count), 4}, boxes);
    label["image_size"] = Tensor::of<int64_t>({2}, {image.dim(0), image.dim(1)});
    add_flags(example, "image/object/is_crowd", count, label["iscrowd"]);
    add_flags(example, "image/object/difficult", count, label["difficult"]);
    if (const Feature* area = find(example, "image/object/area"); area && area->floats.size() == count)
        label["area"] =
            Tensor::of<float>({static_cast<int64_t>(count)}, {area->floats.begin(), area->floats.end()});
    if (const Feature* classes = find(example, "image/object/class/label")) {
        require(classes->ints.size() == count, "{} classes for {} boxes", classes->ints.size(), count);
        label["classes"] = Tensor::of<int64_t>({static_cast<int64_t>(count)}, classes->ints);
    }
    if (const Feature* names = find(example, "image/object/class/text"))
        label["class_names"] = Tensor::strings({static_cast<int64_t>(names->bytes.size())},
                                               {names->bytes.begin(), names->bytes.end()});
    const Feature* id = find(example, "image/source_id");
    if (!id || id->bytes.empty()) return;
    const std::string_view text = id->bytes[0];
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    label["image_id"] = error == std::errc() && end == text.data() + text.size()
                            ? Tensor::scalar<int64_t>(number)
                            : Tensor::strings({}, {std::string(text)});
}

}  // namespace

Sample parse_image_example(Bytes record) {
    const Example example = parse_example(record);
    const Feature* encoded = find(example, "image/encoded");
    require(encoded && encoded->bytes.size() == 1, "there is no feature image/encoded with one image");
    Sample sample;
    sample.inputs.push_back(decode_image(as_bytes(encoded->bytes[0])));
    if (const Feature* label = find(example, "image/class/label")) {
        require(label->ints.size() == 1, "image/class/label has {} values, expected 1", label->ints.size());
        sample.label = class_label(label->ints[0]);
    }
    add_boxes(example, sample.inputs[0], sample.label);
    return sample;
}

// MXNet's image record: a count of labels, one label, two numbers, then that many labels when the count is not 0.
Sample parse_image_rec(Bytes record) {
    constexpr size_t kHeader = 24;
    require(record.size() >= kHeader, "{} bytes are too few for an image record", record.size());
    uint32_t count = 0;
    float label = 0;
    std::memcpy(&count, record.data(), 4);
    std::memcpy(&label, record.data() + 4, 4);
    require(count <= (record.size() - kHeader) / 4, "it says {} labels, there is room for {}", count,
            (record.size() - kHeader) / 4);
    Sample sample;
    std::vector<float> labels(std::max<size_t>(count, 1), label);
    if (count > 0) std::memcpy(labels.data(), record.data() + kHeader, 4 * size_t{count});
    const bool is_class =
        labels.size() == 1 && labels[0] == std::trunc(labels[0]) && std::fabs(labels[0]) < 1e9F;
    if (is_class)
        sample.label = class_label(static_cast<int64_t>(labels[0]));
    else
        sample.label["label"] = Tensor::of<float>({static_cast<int64_t>(labels.size())}, labels);
    sample.inputs.push_back(decode_image(record.subspan(kHeader + 4 * size_t{count})));
    return sample;
}

bool is_tfrecord_name(const fs::path& path) {
    const std::string name = path.filename().string();
    const std::string extension = lower_extension(path);
    const size_t of = name.find("-of-");
    return extension == ".tfrecord" || extension == ".tfrecords" ||
           (of != std::string::npos && name.substr(0, of).find('-') != std::string::npos);
}

DatasetPointer open_image_records(const fs::path& path) {
    std::vector<fs::path> paths{path};
    std::error_code error;
    if (fs::is_directory(path, error)) paths = files_in(path, is_tfrecord_name);
    if (paths.empty())
        throw Error(fmt::format("{}: there are no TFRecord files", path.string()),
                    "they are called like validation-00000-of-00128 or x.tfrecord");
    std::vector<RecordFile> files;
    files.reserve(paths.size());
    for (const fs::path& file : paths) files.push_back(open_tfrecord(file));
    return std::make_unique<ImageRecords>(std::move(files), read_example);
}

DatasetPointer open_rec(const fs::path& path) {
    fs::path index = fs::path(path).replace_extension(".idx");
    std::error_code error;
    if (!fs::exists(index, error)) index.clear();
    std::vector<RecordFile> files;
    files.push_back(open_recordio(path, index));
    return std::make_unique<ImageRecords>(std::move(files), read_rec);
}

DatasetPointer make_image_record(const Settings& settings, Ports) {
    settings.allow_keys({"root", "num_cores"});  // reading has threads of its own
    return open_image_records(existing_path(settings, "root"));
}

DatasetPointer make_recordio(const Settings& settings, Ports) {
    settings.allow_keys({"root", "idx"});
    const fs::path path = existing_path(settings, "root");
    if (!settings.has("idx")) return open_rec(path);
    std::vector<RecordFile> files;
    files.push_back(open_recordio(path, existing_path(settings, "idx")));
    return std::make_unique<ImageRecords>(std::move(files), read_rec);
}

}  // namespace kilter
