#include "data/labels.h"

#include <charconv>
#include <string_view>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/npy.h"

namespace kilter {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

LabelList read_labels(const std::filesystem::path& path) {
    LabelList list;
    if (path.extension() == ".npy") {
        const Tensor array = read_npy(path);
        require(is_integer(array.dtype()) && (array.rank() == 1 || (array.rank() == 2 && array.dim(1) == 1)),
                "{}: labels are {} {}, expected one whole number for each sample", path.string(),
                name(array.dtype()), to_string(array.shape()));
        list.classes = array.to_ints();
        return list;
    }
    const auto file = MappedFile::open(path);
    std::string_view rest(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
    for (int64_t number = 1; !rest.empty(); ++number) {
        const size_t end = rest.find('\n');
        const std::string_view line = trimmed(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        if (line.empty()) continue;
        const size_t gap = line.find_last_of(" \t,");
        const std::string_view word = gap == std::string_view::npos ? line : line.substr(gap + 1);
        int64_t index = 0;
        const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), index);
        require(error == std::errc() && stop == word.data() + word.size(),
                "{}: line {}: expected \"file class\" or \"class\" with a whole number, found '{}'",
                path.string(), number, line.substr(0, 80));
        const std::string_view name = gap == std::string_view::npos ? "" : trimmed(line.substr(0, gap));
        require(list.classes.empty() || list.files.empty() == name.empty(),
                "{}: line {}: some lines name a file and others do not", path.string(), number);
        if (!name.empty()) list.files.emplace_back(name);
        list.classes.push_back(index);
    }
    require(!list.classes.empty(), "{}: there are no labels", path.string());
    return list;
}

}  // namespace kilter
