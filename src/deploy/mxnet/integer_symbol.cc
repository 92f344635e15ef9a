#include "deploy/mxnet/integer_symbol.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/fail.h"
#include "deploy/mxnet/groups.h"
#include "formats/mxnet/parameters.h"

namespace kilter::mxnet {
namespace {

// A value on integers: the bytes and the range they stand for.
struct Bytes {
    Entry data, min, max;
};

// A value in the new symbol, in one form or both.
struct Both {
    std::optional<Entry> real;
    std::optional<Bytes> bytes;
};

class Writer {
  public:
    Writer(const Symbol& source, const NamedArrays& arrays, const IntegerChoice& choice)
        : source_(source), choice_(choice), groups_(find_groups(source)) {
        made_.symbol.version = source.version;
        for (const auto& [name, array] : arrays) arrays_.emplace(plain_name(name), &array);
        for (const auto& [name, array] : arrays) given_.emplace(plain_name(name), name);
    }

    IntegerModel write() {
        std::unordered_map<size_t, const Group*> last_of;
        std::unordered_set<size_t> inside;
        for (const Group& group : groups_) {
            last_of[group.last] = &group;
            for (const size_t node : group.nodes()) inside.insert(node);
        }
        for (size_t i = 0; i < source_.nodes.size(); ++i) {
            if (source_.nodes[i].is_variable()) continue;  // comes when it is read
            if (const auto group = last_of.find(i); group != last_of.end())
                write_group(*group->second);
            else if (!inside.contains(i))
                write_single(i);
        }
        for (const Entry& head : source_.heads) made_.symbol.heads.push_back(real(head));
        return std::move(made_);
    }

  private:
    static std::string plain_name(const std::string& name) {
        return name.starts_with("arg:") || name.starts_with("aux:") ? name.substr(4) : name;
    }

    // As the reader names values. How many outputs a node has is not told: the first of several is "_output0".
    std::string name_of(const Entry& entry) const {
        const SymbolNode& node = source_.nodes[entry.node];
        if (node.is_variable()) return node.name;
        const std::string only = node.name + "_output";
        const std::string numbered = fmt::format("{}{}", only, entry.index);
        return entry.index > 0 || choice_.ranges.contains(numbered) ? numbered : only;
    }

    const Range* range_of(const Entry& entry) const {
        const auto found = choice_.ranges.find(name_of(entry));
        return found == choice_.ranges.end() ? nullptr : &found->second;
    }

    size_t add(SymbolNode node) {
        made_.symbol.nodes.push_back(std::move(node));
        return made_.symbol.nodes.size() - 1;
    }

    void report(size_t node, std::string fused, std::string note = {}) {
        made_.operators.push_back(
            {source_.nodes[node].name, source_.nodes[node].op, std::move(fused), std::move(note)});
    }

    // Variables come once, with their arrays.
    Entry variable(const Entry& entry) {
        const SymbolNode& node = source_.nodes[entry.node];
        const auto [known, is_new] = variables_.try_emplace(node.name, 0);
        if (is_new) {
            known->second = add(node);
            const auto array = arrays_.find(node.name);
            if (array != arrays_.end()) made_.arrays.emplace_back(given_.at(node.name), *array->second);
        }
        return {known->second, 0};
    }

    Entry new_variable(const std::string& name, Tensor array) {
        SymbolNode node;
        node.op = "null";
        node.name = name;
        const size_t place = add(std::move(node));
        made_.arrays.emplace_back("arg:" + name, std::move(array));
        return {place, 0};
    }

    Both& value(const Entry& entry) { return values_[{entry.node, entry.index}]; }

    Entry real(const Entry& entry) {
        if (source_.nodes[entry.node].is_variable()) return variable(entry);
        if (const auto place = real_.find(entry.node); place != real_.end())
            return {place->second, entry.index};
        Both& both = value(entry);
        if (!both.real) {
            require(both.bytes.has_value(), "'{}' is read before it is computed", name_of(entry));
            SymbolNode node;
            node.op = "_contrib_dequantize";
            node.name = source_.nodes[entry.node].name + "_dequantize";
            node.inputs = {both.bytes->data, both.bytes->min, both.bytes->max};
            both.real = Entry{add(std::move(node)), 0};
        }
        return *both.real;
    }

    bool has_bytes(const Entry& entry) { return value(entry).bytes.has_value(); }

    bool can_be_bytes(const Entry& entry) { return has_bytes(entry) || range_of(entry) != nullptr; }

    Bytes bytes(const Entry& entry) {
        if (!has_bytes(entry)) {
            const Range& range = *range_of(entry);
            SymbolNode node;
            node.op = "_contrib_quantize_v2";
            node.name = name_of(entry) + "_quantize";
            set_range(node, range);
            node.set("out_type", "auto");
            node.inputs = {real(entry)};
            value(entry).bytes = outputs_of(add(std::move(node)));
        }
        return *value(entry).bytes;
    }

    static Bytes outputs_of(size_t node) { return {{node, 0}, {node, 1}, {node, 2}}; }

    // MXNet takes a value as unsigned when its range does not reach below zero.
    static void set_range(SymbolNode& node, const Range& range) {
        node.set("min_calib_range", fmt::format("{:.9g}", static_cast<float>(range.min)));
        node.set("max_calib_range", fmt::format("{:.9g}", static_cast<float>(range.max)));
    }

    void write_real(size_t index) {
        SymbolNode node = source_.nodes[index];
        for (Entry& input : node.inputs) input = real(input);
        real_[index] = add(std::move(node));
    }

    std::string why_not(const Group& group) {
        for (const size_t node : group.nodes())
            if (choice_.excluded.contains(source_.nodes[node].name))
                return "stays in floating point by the plan";
        const SymbolNode& product = source_.nodes[group.product];
        if (is_convolution(product) && range_of({group.last, 0}) == nullptr)
            return "no range is known of its result";
        if (!can_be_bytes(product.inputs[0])) return "no range is known of what it reads";
        if (group.summand && !can_be_bytes(*group.summand)) return "no range is known of what is added";
        for (size_t i = 1; i < product.inputs.size(); ++i)
            if (!arrays_.contains(source_.nodes[product.inputs[i].node].name))
                return "its weights are no constants";
        return {};
    }

    void write_group(const Group& group) {
        const std::string reason = why_not(group);
        if (!reason.empty()) {
            for (const size_t node : group.nodes()) write_real(node);
            for (const size_t node : group.nodes()) report(node, {}, reason);
            return;
        }
        const bool convolution = is_convolution(source_.nodes[group.product]);
        const std::string fused = fused_name(source_, group, convolution ? convolutions_++ : products_++);
        if (convolution)
            write_convolution(group, fused);
        else
            write_product(group, fused);
        for (const size_t node : group.nodes()) report(node, fused);
    }

    // The nodes of a group as a symbol of their own.
    Symbol subgraph(const Group& group) const {
        Symbol inner;
        const auto variable_named = [&](const std::string& name) {
            SymbolNode node;
            node.op = "null";
            node.name = name + "0";
            inner.nodes.push_back(std::move(node));
            return Entry{inner.nodes.size() - 1, 0};
        };
        Entry last;
        const std::vector<size_t> members = group.nodes();
        for (const size_t index : members) {
            SymbolNode node = source_.nodes[index];
            // The operator matches its inputs with the variables as they are met from the product on.
            if (index == group.sum && node.inputs[0] == *group.summand)
                std::swap(node.inputs[0], node.inputs[1]);
            for (Entry& input : node.inputs) {
                const bool own = std::ranges::find(members, input.node) != members.end();
                input = own ? last : variable_named(name_of(input));
            }
            // The operator looks for an Activation.
            if (node.op == "relu") {
                node.op = "Activation";
                node.attributes = {{"act_type", "relu"}};
            }
            inner.nodes.push_back(std::move(node));
            last = {inner.nodes.size() - 1, 0};
        }
        inner.heads = {last};
        return inner;
    }

    // Results go on as bytes when their range is known; else MXNet turns them into floats itself, which products can.
    void set_result(SymbolNode node, const Group& group) {
        const Range* range = range_of({group.last, 0});
        if (range != nullptr) {
            set_range(node, *range);
            value({group.last, 0}).bytes = outputs_of(add(std::move(node)));
        } else {
            node.set("enable_float_output", "True");
            value({group.last, 0}).real = Entry{add(std::move(node)), 0};
        }
    }

    void write_convolution(const Group& group, const std::string& name) {
        const SymbolNode& product = source_.nodes[group.product];
        SymbolNode node;
        node.op = "_sg_mkldnn_conv";
        node.name = "quantized_" + name;
        node.set("quantized", "true");
        const Bytes x = bytes(product.inputs[0]);
        node.inputs.push_back(x.data);
        for (size_t i = 1; i < product.inputs.size(); ++i) node.inputs.push_back(real(product.inputs[i]));
        if (group.batch_norm) {
            node.set("with_bn", "true");
            for (size_t i = 1; i < 5; ++i)
                node.inputs.push_back(real(source_.nodes[*group.batch_norm].inputs[i]));
        }
        std::vector<Entry> borders{x.min, x.max};
        if (group.summand) {
            node.set("with_sum", "true");
            const Bytes summand = bytes(*group.summand);
            node.inputs.push_back(summand.data);
            borders.insert(borders.end(), {summand.min, summand.max});
        }
        if (group.relu) node.set(group.sum ? "with_postsum_act" : "with_act", "true");
        node.inputs.insert(node.inputs.end(), borders.begin(), borders.end());
        node.subgraphs = {subgraph(group)};
        set_result(std::move(node), group);
    }

    // One scale for the array, symmetric: the bytes, and the range as two arrays of one element.
    std::array<Entry, 3> quantized(const Entry& entry) {
        const std::string name = source_.nodes[entry.node].name + "_quantize";
        const auto known = quantized_.find(name);
        if (known != quantized_.end()) return known->second;
        const std::vector<double> values = arrays_.at(source_.nodes[entry.node].name)->to_doubles();
        double largest = 1e-12;
        for (const double value : values) largest = std::max(largest, std::fabs(value));
        std::vector<int8_t> bytes;
        bytes.reserve(values.size());
        for (const double value : values)
            bytes.push_back(
                static_cast<int8_t>(std::clamp(std::nearbyint(value * 127 / largest), -127.0, 127.0)));
        const Shape& shape = arrays_.at(source_.nodes[entry.node].name)->shape();
        const auto border = [&](double value) { return Tensor::of<float>({1}, {static_cast<float>(value)}); };
        return quantized_[name] = {new_variable(name, Tensor::of<int8_t>(shape, bytes)),
                                   new_variable(name + "_min", border(-largest)),
                                   new_variable(name + "_max", border(largest))};
    }

    void write_product(const Group& group, const std::string& name) {
        const SymbolNode& product = source_.nodes[group.product];
        SymbolNode node;
        node.op = "_sg_mkldnn_fully_connected";
        node.name = "quantized_" + name;
        node.set("quantized", "True");
        if (group.relu) node.set("with_eltwise", "True");
        const Bytes x = bytes(product.inputs[0]);
        node.inputs.push_back(x.data);
        std::vector<Entry> borders{x.min, x.max};
        for (size_t i = 1; i < product.inputs.size(); ++i) {
            const auto [data, min, max] = quantized(product.inputs[i]);
            node.inputs.push_back(data);
            borders.insert(borders.end(), {min, max});
        }
        node.inputs.insert(node.inputs.end(), borders.begin(), borders.end());
        node.subgraphs = {subgraph(group)};
        set_result(std::move(node), group);
    }

    // Operators that only hand bytes on, with their names on integers.
    static std::string_view passive(const SymbolNode& node) {
        if (node.op == "Pooling") {
            const Parameters parameters(node);
            const std::string type = parameters.text("pool_type", "max");
            const bool plain = parameters.text("layout", "NCHW") == "NCHW" &&
                               parameters.text("pooling_convention", "valid") != "same";
            return plain && (type == "max" || type == "avg") ? "_contrib_quantized_pooling" : "";
        }
        if (node.op == "Flatten" || node.op == "flatten") return "_contrib_quantized_flatten";
        if (node.op == "Concat" || node.op == "concat") return "_contrib_quantized_concat";
        return {};
    }

    void write_single(size_t index) {
        const SymbolNode& source = source_.nodes[index];
        const std::string_view op = passive(source);
        const bool can =
            !op.empty() && !choice_.excluded.contains(source.name) &&
            std::ranges::all_of(source.inputs, [&](const Entry& input) { return has_bytes(input); });
        if (!can) return write_real(index);
        SymbolNode node;
        node.op = op;
        node.name = "quantized_" + source.name;
        node.attributes = source.attributes;
        std::vector<Entry> borders;
        for (const Entry& input : source.inputs) {
            const Bytes x = bytes(input);
            node.inputs.push_back(x.data);
            borders.insert(borders.end(), {x.min, x.max});
        }
        node.inputs.insert(node.inputs.end(), borders.begin(), borders.end());
        value({index, 0}).bytes = outputs_of(add(std::move(node)));
        report(index, "quantized_" + source.name);
    }

    const Symbol& source_;
    const IntegerChoice& choice_;
    std::vector<Group> groups_;
    std::unordered_map<std::string, const Tensor*> arrays_;  // by plain name
    std::unordered_map<std::string, std::string> given_;     // plain name: the one in the file
    std::unordered_map<size_t, size_t> real_;           // nodes that are what they were: where they are now
    std::map<std::pair<size_t, size_t>, Both> values_;  // of the others, by entry of the source
    std::unordered_map<std::string, size_t> variables_;
    std::unordered_map<std::string, std::array<Entry, 3>> quantized_;
    size_t convolutions_ = 0, products_ = 0;
    IntegerModel made_;
};

}  // namespace

IntegerModel make_integer(const Symbol& symbol, const NamedArrays& arrays, const IntegerChoice& choice) {
    return Writer(symbol, arrays, choice).write();
}

}  // namespace kilter::mxnet
