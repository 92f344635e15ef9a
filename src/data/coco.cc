// COCO: a folder of images and a JSON file with the boxes of their objects.
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "data/dataset_table.h"
#include "data/image.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Coco : public Dataset {
  public:
    Coco(fs::path images, const fs::path& annotations) : images_(std::move(images)) {
        const auto file = MappedFile::open(annotations);
        const auto* text = reinterpret_cast<const char*>(file->bytes().data());
        std::map<int64_t, size_t> index;
        try {
            const Json root = Json::parse(text, text + file->bytes().size());
            for (const Json& image : root.at("images")) {
                index[image.at("id")] = entries_.size();
                entries_.push_back({image.at("file_name"), image.at("id"), {}, {}, {}, {}});
            }
            for (const Json& object : root.at("annotations")) {
                const auto found = index.find(object.at("image_id").get<int64_t>());
                if (found == index.end()) continue;
                // x, y, width and height become y0, x0, y1 and x1.
                const auto box = object.at("bbox").get<std::array<float, 4>>();
                Entry& entry = entries_[found->second];
                for (const float side : {box[1], box[0], box[1] + box[3], box[0] + box[2]})
                    entry.boxes.push_back(side);
                entry.classes.push_back(object.at("category_id"));
                entry.crowds.push_back(object.value("iscrowd", 0));
                entry.areas.push_back(object.value("area", box[2] * box[3]));
            }
        } catch (const Json::exception& error) {
            fail("{}: not a COCO annotation file: {}", annotations.string(), error.what());
        }
        require(!entries_.empty(), "{}: there are no images", annotations.string());
    }

    int64_t size() const override { return static_cast<int64_t>(entries_.size()); }

    Sample sample(int64_t index) const override {
        const Entry& entry = entries_.at(static_cast<size_t>(index));
        const fs::path file = images_ / entry.file;
        Sample sample{{read_image(file)}, {}, file.string()};
        const auto count = static_cast<int64_t>(entry.classes.size());
        sample.label["boxes"] = Tensor::of<float>({count, 4}, entry.boxes);
        sample.label["classes"] = Tensor::of<int64_t>({count}, entry.classes);
        sample.label["iscrowd"] = Tensor::of<int64_t>({count}, entry.crowds);
        sample.label["area"] = Tensor::of<float>({count}, entry.areas);
        sample.label["image_id"] = Tensor::scalar<int64_t>(entry.id);
        sample.label["image_size"] =
            Tensor::of<int64_t>({2}, {sample.inputs[0].dim(0), sample.inputs[0].dim(1)});
        return sample;
    }

  private:
    struct Entry {
        std::string file;
        int64_t id;
        std::vector<float> boxes;
        std::vector<int64_t> classes, crowds;
        std::vector<float> areas;
    };
    fs::path images_;
    std::vector<Entry> entries_;
};

}  // namespace

DatasetPointer make_coco(const Settings& settings, Ports) {
    settings.allow_keys({"root", "img_dir", "anno_dir"});
    const fs::path root = existing_path(settings, "root");
    return std::make_unique<Coco>(root / settings.get("img_dir", "val2017"),
                                  root / settings.get("anno_dir", "annotations/instances_val2017.json"));
}

}  // namespace kilter
