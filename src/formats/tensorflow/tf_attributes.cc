// Attributes of nodes: lookup, and getters that say what was expected.
#include <algorithm>

#include "base/fail.h"
#include "formats/tensorflow/tf_graph.h"

namespace kilter::tensorflow {
namespace {

using ListPointer = std::shared_ptr<const TfList>;
using CallPointer = std::shared_ptr<const TfFunctionCall>;

[[noreturn]] void wrong_kind(std::string_view name, const TfValue& value, std::string_view expected) {
    fail("attribute '{}' is {}, expected {}", name, kind_of(value), expected);
}

template <class T>
T get_or(const TfAttributes& attributes, std::string_view name, T absent, std::string_view expected) {
    const TfValue* value = attributes.find(name);
    if (value == nullptr) return absent;
    if (const T* found = std::get_if<T>(value)) return *found;
    wrong_kind(name, *value, expected);
}

}  // namespace

std::string_view kind_of(const TfValue& value) {
    constexpr std::string_view kKinds[] = {
        "empty",    "a string",      "an integer",         "a float",    "a bool", "a type", "a shape",
        "a tensor", "a placeholder", "of an unknown kind", "a function", "a list"};
    static_assert(std::size(kKinds) == std::variant_size_v<TfValue>);
    return kKinds[value.index()];
}

const TfValue* TfAttributes::find(std::string_view name) const {
    const auto entry = std::ranges::find(entries_, name, &Entry::first);
    return entry == entries_.end() ? nullptr : &entry->second;
}

void TfAttributes::set(std::string_view name, TfValue value) {
    const auto entry = std::ranges::find(entries_, name, &Entry::first);
    if (entry == entries_.end())
        entries_.emplace_back(std::string(name), std::move(value));
    else
        entry->second = std::move(value);
}

void TfAttributes::set(std::string_view name, TfList list) {
    set(name, TfValue(std::make_shared<const TfList>(std::move(list))));
}

void TfAttributes::erase(std::string_view name) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

int64_t TfAttributes::get_int(std::string_view name, int64_t absent) const {
    return get_or(*this, name, absent, "an integer");
}

float TfAttributes::get_float(std::string_view name, float absent) const {
    return get_or(*this, name, absent, "a float");
}

bool TfAttributes::get_bool(std::string_view name, bool absent) const {
    return get_or(*this, name, absent, "a bool");
}

std::string TfAttributes::get_string(std::string_view name, std::string_view absent) const {
    return get_or(*this, name, std::string(absent), "a string");
}

TfType TfAttributes::get_type(std::string_view name, TfType absent) const {
    return get_or(*this, name, absent, "a type");
}

TfShape TfAttributes::get_shape(std::string_view name) const {
    return get_or(*this, name, TfShape(), "a shape");
}

const TfList& TfAttributes::get_list(std::string_view name) const {
    static const TfList empty;
    const TfValue* value = find(name);
    if (value == nullptr) return empty;
    if (const auto* list = std::get_if<ListPointer>(value)) return **list;
    wrong_kind(name, *value, "a list");
}

std::vector<int64_t> TfAttributes::get_ints(std::string_view name, std::vector<int64_t> absent) const {
    if (!has(name)) return absent;
    const TfList& list = get_list(name);
    require(list.strings.empty() && list.floats.empty() && list.bools.empty(),
            "attribute '{}' is a list of something else than integers", name);
    return list.ints;
}

std::vector<std::string> TfAttributes::get_strings(std::string_view name,
                                                   std::vector<std::string> absent) const {
    return has(name) ? get_list(name).strings : absent;
}

std::vector<TfType> TfAttributes::get_types(std::string_view name) const { return get_list(name).types; }

const TfTensor& TfAttributes::get_tensor(std::string_view name) const {
    const TfValue* value = find(name);
    require(value != nullptr, "attribute '{}' is missing", name);
    if (const auto* tensor = std::get_if<TfTensor>(value)) return *tensor;
    wrong_kind(name, *value, "a tensor");
}

const TfFunctionCall& TfAttributes::get_function(std::string_view name) const {
    const TfValue* value = find(name);
    require(value != nullptr, "attribute '{}' is missing", name);
    if (const auto* call = std::get_if<CallPointer>(value)) return **call;
    wrong_kind(name, *value, "a function");
}

}  // namespace kilter::tensorflow
