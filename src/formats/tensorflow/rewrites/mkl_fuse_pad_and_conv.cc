// Zeros around an image are something that convolutions add by themselves.
#include <algorithm>

#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {
namespace {

// Eight numbers, before and after for N, H, W and C; nothing when they are not constant, or something else than zeros is added.
std::optional<std::vector<int64_t>> zero_paddings(const TfGraph& graph, const TfNode& pad) {
    if (pad.op == "PadV2" && pad.data_inputs() == 3) {
        const std::optional<Tensor> value = constant_of(graph, pad.inputs[2]);
        if (!value || value->size() != 1 || value->to_doubles()[0] != 0.0) return std::nullopt;
    } else if (pad.op != "Pad" || pad.data_inputs() != 2) {
        return std::nullopt;
    }
    const std::optional<Tensor> paddings = constant_of(graph, pad.inputs[1]);
    if (!paddings || paddings->shape() != Shape{4, 2}) return std::nullopt;
    return paddings->to_ints();
}

// What the convolution pads already; nothing for SAME, which depends on the size of the image.
std::optional<std::vector<int64_t>> own_paddings(const TfNode& conv) {
    const std::string padding = conv.attributes.get_string("padding");
    if (padding == "VALID") return std::vector<int64_t>(8, 0);
    std::vector<int64_t> own = conv.attributes.get_ints("explicit_paddings");
    if (padding != "EXPLICIT" || own.size() != 8) return std::nullopt;
    return own;
}

bool fuse_pad(const TfGraph& graph, TfNode& conv) {
    const TfNode* pad = graph.producer(conv.inputs[0]);
    if (pad == nullptr || (pad->op != "Pad" && pad->op != "PadV2")) return false;
    const auto paddings = zero_paddings(graph, *pad);
    if (!paddings) return false;
    if (std::ranges::all_of(*paddings, [](int64_t amount) { return amount == 0; })) {
        conv.inputs[0] = pad->inputs[0];
        return true;
    }
    std::optional<std::vector<int64_t>> total = own_paddings(conv);
    // Batch and channels (of NHWC: the first and the last two numbers) cannot be padded by a convolution.
    if (!total || conv.attributes.get_string("data_format", "NHWC") != "NHWC" || (*paddings)[0] != 0 ||
        (*paddings)[1] != 0 || (*paddings)[6] != 0 || (*paddings)[7] != 0 ||
        std::ranges::any_of(*paddings, [](int64_t amount) { return amount < 0; }))
        return false;
    for (size_t i = 0; i < 8; ++i) (*total)[i] += (*paddings)[i];
    TfList list;
    list.ints = *total;
    conv.attributes.set("padding", "EXPLICIT");
    conv.attributes.set("explicit_paddings", std::move(list));
    conv.inputs[0] = pad->inputs[0];
    return true;
}

}  // namespace

int mkl_fuse_pad_and_conv(TfGraph& graph, const Wanted& wanted) {
    return rewrite(graph, wanted, [&](const Readers&, TfNode& node) {
        return is_convolution(node) && node.data_inputs() == 2 && fuse_pad(graph, node);
    });
}

}  // namespace kilter::tensorflow
