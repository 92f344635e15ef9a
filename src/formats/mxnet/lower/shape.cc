// Operators that move elements without touching them: reshaping, joining, cutting, repeating.
#include <numeric>

#include "formats/mxnet/lower/lowering.h"

namespace kilter::mxnet {
namespace {

void lower_concat(Lowering& l) {
    l.result(l.emit("Concat", {l.inputs().begin(), l.inputs().end()},
                    attributes_of({{"axis", l.parameters().integer("dim", 1)}})));
}

void lower_stack(Lowering& l) {
    const int64_t axis = l.parameters().integer("axis", 0);
    std::vector<Value*> parts;
    for (Value* value : l.inputs()) parts.push_back(l.unsqueeze(value, {axis}));
    l.result(l.emit("Concat", std::move(parts), attributes_of({{"axis", axis}})));
}

void lower_flatten(Lowering& l) {
    l.result(l.emit("Flatten", {l.input()}, attributes_of({{"axis", int64_t{1}}})));
}

// Reshape understands codes: 0 keeps a dimension, -1 works one out, -2 keeps the rest, -3 merges two, -4 splits one into
// the two that follow. The new shape is put together from pieces of the old one, which passes fold where it is known.
class Pieces {
  public:
    Pieces(Lowering& l, Value* x) : l_(l), shape_(l.shape_of(x)) {}

    void keep() { add(old(at_, at_ + 1), 1); }
    void keep_rest() { add(old(at_, std::numeric_limits<int64_t>::max()), 0); }
    void merge() { add(l_.emit("ReduceProd", {old(at_, at_ + 2), l_.add_ints({0})}), 2); }
    void put(int64_t dim) { pieces_.push_back(l_.add_ints({dim})); }
    void split(int64_t first, int64_t second) {
        // -1 is what is left over.
        if (first == -1) first = quotient(second);
        if (second == -1) second = quotient(first);
        put(first);
        put(second);
        ++at_;
    }
    void skip() { ++at_; }
    Value* join() { return l_.emit("Concat", pieces_, attributes_of({{"axis", int64_t{0}}})); }

  private:
    Value* old(int64_t from, int64_t to) {
        return l_.emit("Slice", {shape_, l_.add_ints({from}), l_.add_ints({to})});
    }
    void add(Value* piece, int64_t used) {
        pieces_.push_back(piece);
        at_ += used;
    }
    int64_t quotient(int64_t known) const {
        const auto dims = l_.shape_data(shape_);
        if (!dims || static_cast<size_t>(at_) >= dims->size() || !(*dims)[static_cast<size_t>(at_)].known() ||
            known <= 0)
            not_lowered("a dimension to split is not known");
        return (*dims)[static_cast<size_t>(at_)].value / known;
    }

    Lowering& l_;
    Value* shape_;
    std::vector<Value*> pieces_;
    int64_t at_ = 0;  // the dimension of the old shape that comes next
};

void lower_reshape(Lowering& l) {
    const Parameters parameters = l.parameters();
    if (parameters.flag("reverse", false)) not_lowered("a reshape from the end");
    const Ints shape =
        parameters.has("shape") ? parameters.integers("shape") : parameters.integers("target_shape");
    if (shape.empty()) not_lowered("a reshape without a shape");
    bool plain = true;
    for (size_t i = 0; i < shape.size(); ++i) plain = plain && shape[i] >= -1;
    if (plain) return l.result(l.reshape(l.input(), shape));
    Pieces pieces(l, l.input());
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == 0)
            pieces.keep();
        else if (shape[i] == -2)
            pieces.keep_rest();
        else if (shape[i] == -3)
            pieces.merge();
        else if (shape[i] == -4 && i + 2 < shape.size()) {
            pieces.split(shape[i + 1], shape[i + 2]);
            i += 2;
        } else if (shape[i] >= -1) {
            pieces.put(shape[i]);
            pieces.skip();
        } else {
            not_lowered("a reshape with code {}", shape[i]);
        }
    }
    l.result(l.emit("Reshape", {l.input(), pieces.join()}));
}

void lower_expand_dims(Lowering& l) { l.result(l.unsqueeze(l.input(), {l.parameters().integer("axis", 0)})); }

void lower_squeeze(Lowering& l) {
    const Ints axes = l.parameters().integers("axis");
    l.result(axes.empty() ? l.emit("Squeeze", {l.input()})
                          : l.emit("Squeeze", {l.input(), l.add_ints(axes)}));
}

void lower_transpose(Lowering& l) {
    const Ints axes = l.parameters().integers("axes");
    l.result(axes.empty() ? l.emit("Transpose", {l.input()})
                          : l.emit("Transpose", {l.input()}, attributes_of({{"perm", axes}})));
}

void lower_swap(Lowering& l) {
    const Parameters parameters = l.parameters();
    Ints perm(static_cast<size_t>(l.rank(l.input())));
    std::iota(perm.begin(), perm.end(), 0);
    const auto place = [&](const char* name) {
        return static_cast<size_t>(l.axis(parameters.integer(name, 0), l.input()));
    };
    const size_t a = place("dim1"), b = place("dim2");
    if (a >= perm.size() || b >= perm.size()) not_lowered("axes beyond the rank");
    std::swap(perm[a], perm[b]);
    l.result(l.emit("Transpose", {l.input()}, attributes_of({{"perm", perm}})));
}

void lower_split(Lowering& l) {
    const Parameters parameters = l.parameters();
    const int64_t count = parameters.integer("num_outputs", 1);
    const int64_t axis = parameters.integer("axis", 1);
    if (count < 1 || count > 4096) not_lowered("{} outputs", count);
    std::vector<Value*> parts = l.emit_many("Split", {l.input()}, static_cast<size_t>(count),
                                            attributes_of({{"axis", axis}, {"num_outputs", count}}));
    for (Value* part : parts)
        l.result(parameters.flag("squeeze_axis", false) ? l.emit("Squeeze", {part, l.add_ints({axis})})
                                                        : part);
}

void lower_tile(Lowering& l) {
    Ints repeats = l.parameters().integers("reps");
    Value* x = l.input();
    const int rank = l.rank(x);
    // The shorter of the two is filled up with ones in front.
    if (static_cast<int>(repeats.size()) > rank) {
        Ints axes(repeats.size() - static_cast<size_t>(rank));
        std::iota(axes.begin(), axes.end(), 0);
        x = l.unsqueeze(x, axes);
    }
    repeats.insert(repeats.begin(),
                   static_cast<size_t>(std::max<int>(rank - static_cast<int>(repeats.size()), 0)), 1);
    l.result(l.emit("Tile", {x, l.add_ints(repeats)}));
}

void lower_repeat(Lowering& l) {
    const Parameters parameters = l.parameters();
    const int64_t count = parameters.integer("repeats", 1);
    if (!parameters.has("axis")) not_lowered("a repetition of the flattened array");
    // Every element becomes a row of copies along a new axis, which is merged again.
    const int64_t axis = l.axis(parameters.integer("axis", 0), l.input());
    Ints repeats(static_cast<size_t>(l.rank(l.input())) + 1, 1);
    repeats[static_cast<size_t>(axis) + 1] = count;
    Value* tiled = l.emit("Tile", {l.unsqueeze(l.input(), {axis + 1}), l.add_ints(repeats)});
    Value* factors = l.add_ints([&] {
        Ints all(static_cast<size_t>(l.rank(l.input())), 1);
        all[static_cast<size_t>(axis)] = count;
        return all;
    }());
    l.result(l.emit("Reshape", {tiled, l.emit("Mul", {l.shape_of(l.input()), factors})}));
}

void lower_broadcast_to(Lowering& l) {
    Ints shape = l.parameters().integers("shape");
    for (int64_t& dim : shape)
        if (dim == 0) dim = 1;  // as it is: ONNX leaves a dimension alone when told 1
    l.result(l.emit("Expand", {l.input(), l.add_ints(shape)}));
}

void lower_broadcast_axis(Lowering& l) {
    const Ints axes = l.parameters().integers("axis"), sizes = l.parameters().integers("size");
    if (axes.size() != sizes.size()) not_lowered("{} axes and {} sizes", axes.size(), sizes.size());
    Ints shape(static_cast<size_t>(l.rank(l.input())), 1);
    for (size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<size_t>(l.axis(axes[i], l.input()));
        if (axis >= shape.size()) not_lowered("axis {}", axes[i]);
        shape[axis] = sizes[i];
    }
    l.result(l.emit("Expand", {l.input(), l.add_ints(shape)}));
}

void lower_broadcast_like(Lowering& l) {
    if (l.parameters().has("lhs_axes")) not_lowered("lhs_axes");
    l.result(l.emit("Expand", {l.input(0), l.shape_of(l.input(1))}));
}

void lower_reshape_like(Lowering& l) {
    if (l.parameters().has("lhs_begin") || l.parameters().has("rhs_begin")) not_lowered("a reshape in part");
    l.result(l.emit("Reshape", {l.input(0), l.shape_of(l.input(1))}));
}

void lower_pad(Lowering& l) {
    const Parameters parameters = l.parameters();
    const Ints widths = parameters.integers("pad_width");  // (before, after) for every axis
    Ints begins, ends;
    for (size_t i = 0; i + 1 < widths.size(); i += 2) {
        begins.push_back(widths[i]);
        ends.push_back(widths[i + 1]);
    }
    begins.insert(begins.end(), ends.begin(), ends.end());
    const std::string mode = parameters.text("mode", "constant");
    std::vector<Value*> inputs{l.input(), l.add_ints(begins)};
    if (mode == "constant") inputs.push_back(l.scalar_like(parameters.real("constant_value", 0), l.input()));
    l.result(l.emit("Pad", std::move(inputs), attributes_of({{"mode", mode}})));
}

void lower_shape_array(Lowering& l) { l.result(l.shape_of(l.input())); }

constexpr LowerRule kShapeRules[] = {
    {"Concat", lower_concat},
    {"concat", lower_concat},
    {"stack", lower_stack},
    {"Flatten", lower_flatten},
    {"flatten", lower_flatten},
    {"Reshape", lower_reshape},
    {"reshape", lower_reshape},
    {"expand_dims", lower_expand_dims},
    {"squeeze", lower_squeeze},
    {"transpose", lower_transpose},
    {"SwapAxis", lower_swap},
    {"swapaxes", lower_swap},
    {"SliceChannel", lower_split},
    {"split", lower_split},
    {"tile", lower_tile},
    {"repeat", lower_repeat},
    {"broadcast_to", lower_broadcast_to},
    {"broadcast_axis", lower_broadcast_axis},
    {"broadcast_axes", lower_broadcast_axis},
    {"broadcast_like", lower_broadcast_like},
    {"reshape_like", lower_reshape_like},
    {"Pad", lower_pad},
    {"pad", lower_pad},
    {"shape_array", lower_shape_array},
};

}  // namespace

std::span<const LowerRule> shape_rules() { return kShapeRules; }

}  // namespace kilter::mxnet
