#include <algorithm>
#include <cctype>

#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/spelling.h"
#include "data/dataset_table.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

using Factory = DatasetPointer (*)(const Settings&, Ports);

const std::map<std::string, Factory, std::less<>>& table() {
    static const std::map<std::string, Factory, std::less<>> kTable{
        {"ImageFolder", make_image_folder},
        {"ImagenetRaw", make_imagenet_raw},
        {"NumPy", make_numpy},
        {"MNIST", make_idx},
        {"FashionMNIST", make_idx},
        {"CIFAR10", make_cifar10},
        {"CIFAR100", make_cifar100},
        {"dummy", make_dummy},
        {"dummy_v2", make_dummy_v2},
    };
    return kTable;
}

}  // namespace

std::unique_ptr<Dataset> make_dataset(const Component& component, std::span<const Port> inputs) {
    const auto found = table().find(component.name);
    if (found == table().end()) {
        const std::vector<std::string> names = dataset_names();
        const std::vector<std::string_view> views(names.begin(), names.end());
        const std::string_view near = nearest_word(component.name, views);
        const std::string& where = component.settings.where();
        throw Error(
            fmt::format("{}{}there is no dataset '{}'", where, where.empty() ? "" : ": ", component.name),
            near.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                         : fmt::format("did you mean '{}'?", near));
    }
    try {
        return found->second(component.settings, inputs);
    } catch (const Error& error) {
        throw error.in(component.name);
    }
}

std::vector<std::string> dataset_names() {
    std::vector<std::string> names;
    for (const auto& [name, factory] : table()) names.push_back(name);
    return names;
}

fs::path existing_path(const Settings& settings, std::string_view key) {
    const Settings& value = settings.get(key);
    std::error_code error;
    const fs::path path = value.as_text();
    if (!fs::exists(path, error)) value.reject("a file or folder that is there");
    return path;
}

std::vector<fs::path> files_in(const fs::path& folder, const std::function<bool(const fs::path&)>& wanted) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code ignored;
        if (!entry->is_directory(ignored) && wanted(entry->path())) files.push_back(entry->path());
    }
    require(!error, "{}: cannot read the folder: {}", folder.string(), error.message());
    std::ranges::sort(files);
    return files;
}

std::string lower_extension(const fs::path& path) {
    std::string extension = path.extension().string();
    for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return extension;
}

Label class_label(int64_t index) { return {{"label", Tensor::scalar<int64_t>(index)}}; }

}  // namespace kilter
