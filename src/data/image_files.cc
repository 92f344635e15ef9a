#include "data/image_files.h"

#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "data/image.h"
#include "data/labels.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

class ImageFiles : public Dataset {
  public:
    struct Entry {
        fs::path file;
        std::optional<int64_t> label;
    };

    explicit ImageFiles(std::vector<Entry> entries) : entries_(std::move(entries)) {}
    int64_t size() const override { return static_cast<int64_t>(entries_.size()); }

    Sample sample(int64_t index) const override {
        const Entry& entry = entries_.at(static_cast<size_t>(index));
        return {
            {read_image(entry.file)}, entry.label ? class_label(*entry.label) : Label{}, entry.file.string()};
    }

  private:
    std::vector<Entry> entries_;
};

std::vector<fs::path> folders_in(const fs::path& folder) {
    std::vector<fs::path> folders;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code ignored;
        if (entry->is_directory(ignored) && !entry->path().filename().string().starts_with('.'))
            folders.push_back(entry->path());
    }
    require(!error, "{}: cannot read the folder: {}", folder.string(), error.message());
    std::ranges::sort(folders);
    return folders;
}

std::vector<ImageFiles::Entry> of_classes(const fs::path& root) {
    std::vector<ImageFiles::Entry> entries;
    const std::vector<fs::path> folders = folders_in(root);
    for (size_t label = 0; label < folders.size(); ++label) {
        std::vector<fs::path> files;
        std::error_code error;
        for (fs::recursive_directory_iterator entry(folders[label], error), end; !error && entry != end;
             entry.increment(error))
            if (is_image_name(entry->path())) files.push_back(entry->path());
        require(!error, "{}: cannot read the folder: {}", folders[label].string(), error.message());
        std::ranges::sort(files);
        for (fs::path& file : files) entries.push_back({std::move(file), static_cast<int64_t>(label)});
    }
    return entries;
}

std::vector<ImageFiles::Entry> of_list(const fs::path& folder, const fs::path& list_file) {
    const LabelList list = read_labels(list_file);
    std::vector<ImageFiles::Entry> entries;
    if (list.files.empty()) {
        std::vector<fs::path> files = files_in(folder, is_image_name);
        require(files.size() == list.classes.size(), "{}: {} labels for the {} images of {}",
                list_file.string(), list.classes.size(), files.size(), folder.string());
        for (size_t i = 0; i < files.size(); ++i) entries.push_back({std::move(files[i]), list.classes[i]});
        return entries;
    }
    std::error_code error;
    for (size_t i = 0; i < list.files.size(); ++i) {
        entries.push_back({folder / list.files[i], list.classes[i]});
        require(fs::exists(entries.back().file, error), "{}: names {}, which is not in {}",
                list_file.string(), list.files[i], folder.string());
    }
    return entries;
}

}  // namespace

DatasetPointer open_images(const fs::path& folder, const fs::path& labels) {
    std::vector<ImageFiles::Entry> entries;
    if (!labels.empty()) {
        entries = of_list(folder, labels);
    } else {
        for (fs::path& file : files_in(folder, is_image_name)) entries.push_back({std::move(file), {}});
        if (entries.empty()) entries = of_classes(folder);
    }
    if (entries.empty())
        throw Error(fmt::format("{}: there are no JPEG or PNG images", folder.string()),
                    "expected images, or one folder of images for each class");
    return std::make_unique<ImageFiles>(std::move(entries));
}

DatasetPointer make_image_folder(const Settings& settings, Ports) {
    settings.allow_keys({"root"});
    return open_images(existing_path(settings, "root"));
}

DatasetPointer make_imagenet_raw(const Settings& settings, Ports) {
    settings.allow_keys({"data_path", "image_list"});
    const fs::path folder = existing_path(settings, "data_path");
    const Settings* list = settings.find("image_list");
    if (list && !list->is_null()) return open_images(folder, existing_path(settings, "image_list"));
    std::error_code error;
    for (const char* name : {"val.txt", "val_map.txt", "labels.txt"})
        if (fs::exists(folder / name, error)) return open_images(folder, folder / name);
    throw Error(fmt::format("{}: there is neither val.txt nor val_map.txt nor labels.txt", folder.string()),
                "image_list names the file with lines \"file class\"");
}

}  // namespace kilter
