// Finds and reads the two files of an MXNet model.
#include <algorithm>

#include "base/fail.h"
#include "formats/mxnet/lower.h"

namespace kilter::mxnet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSymbolEnd = "-symbol.json";
constexpr std::string_view kParamsEnd = ".params";

// "prefix-0012.params" → "prefix"; only those with a number of four or more digits count as epochs.
std::optional<std::string> prefix_of_params(const std::string& name) {
    if (!name.ends_with(kParamsEnd)) return std::nullopt;
    const std::string stem = name.substr(0, name.size() - kParamsEnd.size());
    const size_t dash = stem.rfind('-');
    if (dash == stem.npos || stem.size() - dash < 5) return std::nullopt;
    if (!std::all_of(stem.begin() + static_cast<long>(dash) + 1, stem.end(),
                     [](char c) { return c >= '0' && c <= '9'; }))
        return std::nullopt;
    return stem.substr(0, dash);
}

fs::path last_params(const fs::path& prefix) {
    const fs::path folder = prefix.has_parent_path() ? prefix.parent_path() : fs::path(".");
    fs::path last;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (prefix_of_params(name) != prefix.filename().string()) continue;
        // Longer numbers are higher ones.
        const auto rank = [](const fs::path& path) {
            return std::pair(path.filename().string().size(), path.filename().string());
        };
        if (last.empty() || rank(entry->path()) > rank(last)) last = prefix.parent_path() / name;
    }
    return last;
}

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

}  // namespace

bool is_model(const fs::path& path) {
    const std::string name = path.filename().string();
    return name.ends_with(kSymbolEnd) || name.ends_with(kParamsEnd) ||
           is_there(path.string() + std::string(kSymbolEnd));
}

Files find_files(const fs::path& path) {
    const std::string name = path.string();
    std::string prefix = name;
    if (name.ends_with(kSymbolEnd)) prefix = name.substr(0, name.size() - kSymbolEnd.size());
    if (name.ends_with(kParamsEnd)) {
        const auto stem = prefix_of_params(path.filename().string());
        const std::string file = path.filename().string();
        prefix =
            (path.parent_path() / stem.value_or(file.substr(0, file.size() - kParamsEnd.size()))).string();
    }
    Files files{prefix + std::string(kSymbolEnd), name.ends_with(kParamsEnd) ? path : last_params(prefix)};
    if (files.params.empty() && is_there(prefix + std::string(kParamsEnd)))
        files.params = prefix + std::string(kParamsEnd);
    require(is_there(files.symbol), "{}: no such file: an MXNet model needs its symbol",
            files.symbol.string());
    if (files.params.empty())
        throw Error(fmt::format("{}: there are no parameters beside it", files.symbol.string()),
                    fmt::format("expected {}-0000.params", prefix));
    return files;
}

Model read(const fs::path& path, const ReadOptions& options) {
    const Files files = find_files(path);
    const Symbol symbol = read_symbol(files.symbol);
    const NamedArrays arrays = read_params(files.params);
    try {
        Model model = lower(symbol, arrays, options);
        model.source = files.symbol.string();
        return model;
    } catch (const Error& error) {
        throw error.in(files.symbol.string());
    }
}

Model read_bytes(std::string_view symbol, std::span<const std::byte> params, const ReadOptions& options) {
    const auto copy = std::make_shared<const std::vector<std::byte>>(params.begin(), params.end());
    return lower(parse_symbol(symbol), read_params_bytes(*copy, copy), options);
}

}  // namespace kilter::mxnet
