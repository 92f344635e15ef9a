#include "kilter/graph/attributes.h"

#include <algorithm>

#include "base/fail.h"

namespace kilter {
namespace {

template <class T>
const T* typed(const Attributes& attributes, std::string_view name, std::string_view expected) {
    const AttributeValue* value = attributes.find(name);
    if (value == nullptr) return nullptr;
    const T* held = std::get_if<T>(value);
    require(held != nullptr, "attribute '{}' must be {}", name, expected);
    return held;
}

template <class T>
const T& present(const T* value, std::string_view name) {
    require(value != nullptr, "attribute '{}' is missing", name);
    return *value;
}

}  // namespace

const AttributeValue* Attributes::find(std::string_view name) const {
    for (const Entry& entry : entries_)
        if (entry.name == name) return &entry.value;
    return nullptr;
}

void Attributes::set(std::string_view name, AttributeValue value) {
    for (Entry& entry : entries_) {
        if (entry.name == name) {
            entry.value = std::move(value);
            return;
        }
    }
    entries_.push_back({std::string(name), std::move(value)});
}

void Attributes::erase(std::string_view name) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.name == name; });
}

int64_t Attributes::get_int(std::string_view name, int64_t absent) const {
    const auto* value = typed<int64_t>(*this, name, "an integer");
    return value != nullptr ? *value : absent;
}

float Attributes::get_float(std::string_view name, float absent) const {
    const auto* value = typed<float>(*this, name, "a number");
    return value != nullptr ? *value : absent;
}

std::string Attributes::get_string(std::string_view name, std::string_view absent) const {
    const auto* value = typed<std::string>(*this, name, "a string");
    return value != nullptr ? *value : std::string(absent);
}

std::vector<int64_t> Attributes::get_ints(std::string_view name, std::vector<int64_t> absent) const {
    const auto* value = typed<std::vector<int64_t>>(*this, name, "a list of integers");
    return value != nullptr ? *value : std::move(absent);
}

std::vector<float> Attributes::get_floats(std::string_view name, std::vector<float> absent) const {
    const auto* value = typed<std::vector<float>>(*this, name, "a list of numbers");
    return value != nullptr ? *value : std::move(absent);
}

std::vector<std::string> Attributes::get_strings(std::string_view name,
                                                 std::vector<std::string> absent) const {
    const auto* value = typed<std::vector<std::string>>(*this, name, "a list of strings");
    return value != nullptr ? *value : std::move(absent);
}

const Tensor& Attributes::get_tensor(std::string_view name) const {
    return present(typed<Tensor>(*this, name, "a tensor"), name);
}

const std::shared_ptr<Graph>& Attributes::get_graph(std::string_view name) const {
    return present(typed<std::shared_ptr<Graph>>(*this, name, "a graph"), name);
}

}  // namespace kilter
