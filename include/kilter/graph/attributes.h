// Attributes of a node: a small ordered map from names to typed values.
// Getters return the default when the attribute is absent and throw Error when it has another type.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kilter/base/tensor.h"

namespace kilter {

class Graph;

//! Inside a function body: the value is the caller's attribute of this name. `type` is the ONNX attribute type.
struct AttributeReference {
    std::string name;
    int type = 0;
    bool operator==(const AttributeReference&) const = default;
};

//! An attribute kilter does not interpret: its serialized form, kept for a round trip.
struct ForeignAttribute {
    std::string bytes;
    bool operator==(const ForeignAttribute&) const = default;
};

using AttributeValue =
    std::variant<int64_t, float, std::string, Tensor, std::shared_ptr<Graph>, std::vector<int64_t>,
                 std::vector<float>, std::vector<std::string>, std::vector<Tensor>,
                 std::vector<std::shared_ptr<Graph>>, AttributeReference, ForeignAttribute>;

class Attributes {
  public:
    struct Entry {
        std::string name;
        AttributeValue value;
    };

    bool has(std::string_view name) const { return find(name) != nullptr; }
    const AttributeValue* find(std::string_view name) const;
    void set(std::string_view name, AttributeValue value);
    void erase(std::string_view name);

    int64_t get_int(std::string_view name, int64_t absent = 0) const;
    float get_float(std::string_view name, float absent = 0.0F) const;
    std::string get_string(std::string_view name, std::string_view absent = {}) const;
    std::vector<int64_t> get_ints(std::string_view name, std::vector<int64_t> absent = {}) const;
    std::vector<float> get_floats(std::string_view name, std::vector<float> absent = {}) const;
    std::vector<std::string> get_strings(std::string_view name, std::vector<std::string> absent = {}) const;
    //! Throws when absent.
    const Tensor& get_tensor(std::string_view name) const;
    const std::shared_ptr<Graph>& get_graph(std::string_view name) const;

    bool empty() const { return entries_.empty(); }
    size_t size() const { return entries_.size(); }
    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }
    auto begin() { return entries_.begin(); }
    auto end() { return entries_.end(); }

  private:
    std::vector<Entry> entries_;
};

}  // namespace kilter
