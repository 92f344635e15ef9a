#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kilter/quantization/quantize.h"

namespace kilter {
namespace {

std::string size_text(size_t bytes) {
    return bytes < 1'000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3)
                             : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::string QuantizeReport::text() const {
    struct Count {
        size_t int8 = 0, all = 0;
    };
    std::map<std::string, Count> types;
    for (const OperatorReport& entry : operators) {
        Count& count = types[entry.op];
        ++count.all;
        count.int8 += entry.precision == Precision::int8 ? 1 : 0;
    }
    std::string text = "on integers:\n";
    for (const auto& [type, count] : types)
        if (count.int8 > 0) text += fmt::format("  {:18} {} of {}\n", type, count.int8, count.all);
    // One line for all operators of a type with the same reason, naming the first few.
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> others;
    for (const OperatorReport& entry : operators)
        if (entry.precision != Precision::int8) others[{entry.op, entry.reason}].push_back(entry.name);
    if (!others.empty()) text += "not on integers:\n";
    for (const auto& [key, names] : others) {
        constexpr size_t kShown = 3;
        std::string list;
        for (size_t i = 0; i < std::min(names.size(), kShown); ++i) list += (i > 0 ? ", " : "") + names[i];
        if (names.size() > kShown) list += fmt::format(" and {} more", names.size() - kShown);
        text += fmt::format("  {:18} {}: {}\n", key.first, list, key.second);
    }
    for (const OperatorReport& entry : operators)
        if (entry.precision == Precision::int8 && !entry.reason.empty())
            text += fmt::format("  {}: {}\n", entry.name, entry.reason);
    for (const std::string& note : notes) text += note + "\n";
    return text + fmt::format("weights: {} -> {}\n", size_text(bytes_before), size_text(bytes_after));
}

}  // namespace kilter
