#include "ops/op.h"

#include <algorithm>
#include <map>

#include "base/fail.h"
#include "ops/shape_data.h"

namespace kilter {
namespace {

using Key = std::pair<std::string_view, std::string_view>;  // domain, name

std::map<Key, OpDefinition>& registry() {
    static std::map<Key, OpDefinition> definitions;
    return definitions;
}

const std::optional<Dims> kUnknownShape;

}  // namespace

RegisterOp::RegisterOp(OpDefinition definition) {
    const Key key{definition.domain, definition.name};
    registry().emplace(key, std::move(definition));
}

const OpDefinition* find_op(std::string_view op, std::string_view domain) {
    const auto entry = registry().find(Key{domain == "ai.onnx" ? std::string_view() : domain, op});
    return entry == registry().end() ? nullptr : &entry->second;
}

const OpDefinition* find_op(const Node& node) { return find_op(node.op(), node.domain()); }

std::vector<const OpDefinition*> all_ops() {
    std::vector<const OpDefinition*> found;
    for (const auto& [key, definition] : registry()) found.push_back(&definition);
    return found;
}

const std::optional<Dims>& InferContext::shape(size_t index) const {
    return has_input(index) ? input(index).shape : kUnknownShape;
}

int InferContext::rank(size_t index) const {
    const std::optional<Dims>& dims = shape(index);
    return dims ? static_cast<int>(dims->size()) : -1;
}

std::optional<std::vector<int64_t>> InferContext::ints(size_t index) const {
    if (!has_input(index)) return std::nullopt;
    if (const Tensor* tensor = constant(index)) return tensor->to_ints();
    const std::optional<Dims> data = shape_data(index);
    if (!data) return std::nullopt;
    std::vector<int64_t> values;
    for (const Dim& dim : *data) {
        const std::optional<int64_t> number = entry_number(dim);
        if (!number) return std::nullopt;
        values.push_back(*number);
    }
    return values;
}

void InferContext::set_output(size_t index, DType dtype) {
    ValueType type;
    type.dtype = dtype;
    set_output(index, std::move(type));
}

void infer_node(InferContext& context) {
    const OpDefinition* definition = find_op(context.node());
    if (definition == nullptr || definition->infer == nullptr) return;
    try {
        verify_schema(context.node());
        definition->infer(context);
    } catch (const Error& error) {
        throw error.in(describe(context.node()));
    }
}

int64_t normalize_axis(int64_t axis, int64_t rank, std::string_view what) {
    require(axis >= -rank && axis < std::max<int64_t>(rank, 1), "{} {} is out of range for rank {}", what,
            axis, rank);
    return axis < 0 ? axis + rank : axis;
}

namespace {

// Is `a` named min(b, …)? Then b is 1 where a is, and the two broadcast to b: either they are equal or b exceeds the limit,
// which cannot be broadcast at all.
bool is_clamped(const Dim& a, const Dim& b) {
    return !b.symbol.empty() && a.symbol.starts_with("min(" + b.symbol + ", ");
}

Dim broadcast_dim(const Dim& a, const Dim& b) {
    if (a == b) return a;
    if (a.known() && a.value == 1) return b;
    if (b.known() && b.value == 1) return a;
    // A number above one beside an unknown: the unknown is either equal or one.
    if (a.known() && !b.known()) return a;
    if (b.known() && !a.known()) return b;
    if (is_clamped(a, b)) return b;
    if (is_clamped(b, a)) return a;
    if (!a.known() && !b.known()) return {};
    fail("cannot broadcast dimension {} with {}", to_string(a), to_string(b));
}

}  // namespace

Dim clamped_dim(const Dim& dim, int64_t limit) { return Dim(fmt::format("min({}, {})", dim.symbol, limit)); }

Dims broadcast(const Dims& a, const Dims& b) {
    Dims result(std::max(a.size(), b.size()));
    for (size_t i = 0; i < result.size(); ++i) {
        const Dim left = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
        const Dim right = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
        result[result.size() - 1 - i] = broadcast_dim(left, right);
    }
    return result;
}

Shape broadcast(const Shape& a, const Shape& b) {
    Shape result;
    for (const Dim& dim : broadcast(to_dims(a), to_dims(b))) result.push_back(dim.value);
    return result;
}

}  // namespace kilter
