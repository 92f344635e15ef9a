// Blocks of pixels to channels or batches and back.
#include <algorithm>
#include <array>

#include "formats/tensorflow/lower/lowering.h"
#include "formats/tensorflow/lower/window.h"

namespace kilter::tensorflow {
namespace {

void lower_depth(Lowering& l, std::string_view op) {
    const bool last = is_channels_last(l);
    Value* x = last ? l.channels_first(l.input(0)) : l.input(0);
    Value* y = l.emit(op, {x}, attributes_of({{"blocksize", l.attributes().get_int("block_size")}}));
    l.name_main(y);
    l.result(last ? l.channels_last(y) : y);
}

// Sizes of all axes but the first; gives up when one is open.
Ints sizes_behind_batch(const Lowering& l, const Value* x, size_t blocks) {
    const Dims& dims = l.dims(x);
    require(dims.size() > blocks, "{} blocks do not fit {} axes", blocks, dims.size());
    Ints sizes;
    for (size_t axis = 1; axis < dims.size(); ++axis) {
        if (!dims[axis].known()) not_lowered("the size of axis {} is not known", axis);
        sizes.push_back(dims[axis].value);
    }
    return sizes;
}

Ints blocks_of(const Lowering& l) {
    const Ints blocks = l.ints(1);
    for (const int64_t block : blocks) require(block > 0, "a block must not be empty");
    return blocks;
}

void lower_space_to_batch(Lowering& l) {
    const Ints blocks = blocks_of(l);
    const Ints paddings = l.ints(2);
    const size_t count = blocks.size();
    require(paddings.size() == 2 * count, "{} paddings do not fit {} blocks", paddings.size(), count);
    const auto rank = static_cast<size_t>(l.rank(l.input(0)));
    require(rank > count, "{} blocks do not fit {} axes", count, rank);
    Ints pads(2 * rank, 0);
    for (size_t i = 0; i < count; ++i) {
        pads[i + 1] = paddings[2 * i];
        pads[i + 1 + rank] = paddings[2 * i + 1];
    }
    Value* x = l.emit("Pad", {l.input(0), l.add_ints(pads)});
    const Ints sizes = sizes_behind_batch(l, x, count);
    // (n, h/b, b, w/b, b, …) → (b, b, n, h/b, w/b, …)
    Ints split{-1};
    Ints perm;
    Ints merged{-1};
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (i < count) {
            require(sizes[i] % blocks[i] == 0, "{} is no multiple of the block {}", sizes[i], blocks[i]);
            split.push_back(sizes[i] / blocks[i]);
            split.push_back(blocks[i]);
            perm.push_back(static_cast<int64_t>(2 * i + 2));
            merged.push_back(sizes[i] / blocks[i]);
        } else {
            split.push_back(sizes[i]);
            merged.push_back(sizes[i]);
        }
    }
    perm.push_back(0);
    for (size_t i = 0; i < count; ++i) perm.push_back(static_cast<int64_t>(2 * i + 1));
    for (size_t axis = 2 * count + 1; axis < split.size(); ++axis) perm.push_back(static_cast<int64_t>(axis));
    l.result(l.reshape(l.transpose(l.reshape(x, split), perm), merged));
}

bool is_plain(const TfNode& conv) {
    const auto all_ones = [&](std::string_view name) {
        const Ints list = conv.attributes.get_ints(name);
        return std::ranges::count(list, 1) == static_cast<std::ptrdiff_t>(list.size());
    };
    return (conv.op == "Conv2D" || conv.op == "DepthwiseConv2dNative") && conv.data_inputs() == 2 &&
           conv.attributes.get_string("padding") == "VALID" && all_ones("strides") && all_ones("dilations") &&
           conv.attributes.get_string("data_format", "NHWC") == "NHWC";
}

// SpaceToBatchND, a convolution and BatchToSpaceND: how dilated convolutions were written before there were any.
bool lower_dilated(Lowering& l, const Ints& blocks, const Ints& crops) {
    const TfNode* conv = l.source().producer(l.node().inputs[0]);
    const TfNode* spread =
        conv == nullptr || !is_plain(*conv) ? nullptr : l.source().producer(conv->inputs[0]);
    if (spread == nullptr || spread->op != "SpaceToBatchND" || spread->data_inputs() != 3 ||
        blocks.size() != 2)
        return false;
    const Value* own_blocks = l.find(spread->inputs[1]);
    const Value* own_pads = l.find(spread->inputs[2]);
    Value* x = l.find(spread->inputs[0]);
    Value* weights = l.find(conv->inputs[1]);
    if (own_blocks == nullptr || own_pads == nullptr || x == nullptr || weights == nullptr) return false;
    const Tensor* spread_blocks = l.constant(own_blocks);
    const Tensor* spread_pads = l.constant(own_pads);
    if (spread_blocks == nullptr || spread_pads == nullptr || spread_blocks->to_ints() != blocks)
        return false;
    const Ints pads = spread_pads->to_ints();
    const Dims& w = l.dims(weights);
    if (pads.size() != 4 || w.size() != 4 || l.rank(x) != 4 || !w[0].known() || !w[1].known()) return false;
    WindowAttributes window{{w[0].value, w[1].value}, {1, 1}, blocks, {}, {}};
    window.pads = {pads[0] - crops[0], pads[2] - crops[2], pads[1] - crops[1], pads[3] - crops[3]};
    if (std::ranges::any_of(window.pads, [](int64_t pad) { return pad < 0; })) return false;
    Value* y = conv->op == "Conv2D" ? emit_conv(l, l.channels_first(x), weights, window)
                                    : emit_depthwise(l, l.channels_first(x), weights, window);
    l.name_main(y, conv->name);
    l.result(l.channels_last(y));
    return true;
}

void lower_batch_to_space(Lowering& l) {
    const Ints blocks = blocks_of(l);
    const Ints crops = l.ints(2);
    const size_t count = blocks.size();
    require(crops.size() == 2 * count, "{} crops do not fit {} blocks", crops.size(), count);
    if (lower_dilated(l, blocks, crops)) return;
    const Ints sizes = sizes_behind_batch(l, l.input(0), count);
    // (b, b, n, h, w, …) → (n, h, b, w, b, …)
    Ints split = blocks;
    split.push_back(-1);
    split.insert(split.end(), sizes.begin(), sizes.end());
    Ints perm{static_cast<int64_t>(count)};
    Ints merged{-1};
    Ints starts;
    Ints ends;
    Ints axes;
    for (size_t i = 0; i < sizes.size(); ++i) {
        perm.push_back(static_cast<int64_t>(count + 1 + i));
        if (i >= count) {
            merged.push_back(sizes[i]);
            continue;
        }
        perm.push_back(static_cast<int64_t>(i));
        merged.push_back(sizes[i] * blocks[i]);
        starts.push_back(crops[2 * i]);
        ends.push_back(sizes[i] * blocks[i] - crops[2 * i + 1]);
        axes.push_back(static_cast<int64_t>(i + 1));
    }
    Value* whole = l.reshape(l.transpose(l.reshape(l.input(0), split), perm), merged);
    l.result(l.emit("Slice", {whole, l.add_ints(starts), l.add_ints(ends), l.add_ints(axes)}));
}

constexpr std::array kSpaceRules{
    LowerRule{"SpaceToDepth", [](Lowering& l) { lower_depth(l, "SpaceToDepth"); }},
    LowerRule{"DepthToSpace", [](Lowering& l) { lower_depth(l, "DepthToSpace"); }},
    LowerRule{"SpaceToBatchND", lower_space_to_batch},
    LowerRule{"BatchToSpaceND", lower_batch_to_space},
};

}  // namespace

std::span<const LowerRule> space_rules() { return kSpaceRules; }

}  // namespace kilter::tensorflow
