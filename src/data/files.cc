// What datasets share: finding their files, and the label of a class.
#include <algorithm>
#include <cctype>

#include "base/fail.h"
#include "data/dataset_table.h"

namespace kilter {

namespace fs = std::filesystem;

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
