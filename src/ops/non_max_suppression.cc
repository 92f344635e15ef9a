// NonMaxSuppression: per batch and class, the best boxes that do not overlap a better one too much.
#include <algorithm>

#include "base/convert.h"
#include "base/fail.h"
#include "ops/op.h"

namespace kilter::non_max_suppression_op {

struct Box {
    float left, top, right, bottom;
};

void infer(InferContext& context) { context.set_output(0, DType::i64, {Dim(), Dim(3)}); }

Box box_at(const float* numbers, bool center) {
    if (center) {
        const float half_width = numbers[2] / 2;
        const float half_height = numbers[3] / 2;
        return {numbers[0] - half_width, numbers[1] - half_height, numbers[0] + half_width,
                numbers[1] + half_height};
    }
    // Any two opposite corners, y before x.
    return {std::min(numbers[1], numbers[3]), std::min(numbers[0], numbers[2]),
            std::max(numbers[1], numbers[3]), std::max(numbers[0], numbers[2])};
}

float area(const Box& box) { return (box.right - box.left) * (box.bottom - box.top); }

float overlap(const Box& a, const Box& b) {
    const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
    const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
    if (width <= 0 || height <= 0) return 0;
    const float common = width * height;
    const float both = area(a) + area(b) - common;
    return both <= 0 ? 0 : common / both;
}

float number_or(const KernelContext& context, size_t index, float absent) {
    if (!context.has_input(index) || context.input(index).size() == 0) return absent;
    return static_cast<float>(load_double(context.input(index).dtype(), context.input(index).raw(), 0));
}

std::vector<int64_t> best_boxes(const std::vector<Box>& boxes, const float* scores, int64_t most,
                                float iou_threshold, const float* score_threshold) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < static_cast<int64_t>(boxes.size()); ++i)
        if (score_threshold == nullptr || scores[i] > *score_threshold) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
    std::vector<int64_t> chosen;
    for (const int64_t candidate : order) {
        if (static_cast<int64_t>(chosen.size()) >= most) break;
        const bool clear = std::ranges::none_of(chosen, [&](int64_t better) {
            return overlap(boxes[static_cast<size_t>(candidate)], boxes[static_cast<size_t>(better)]) >
                   iou_threshold;
        });
        if (clear) chosen.push_back(candidate);
    }
    return chosen;
}

void kernel(KernelContext& context) {
    const Tensor& boxes = context.input(0);
    const Tensor& scores = context.input(1);
    require(boxes.rank() == 3 && boxes.dim(2) == 4 && scores.rank() == 3 && boxes.dim(0) == scores.dim(0) &&
                boxes.dim(1) == scores.dim(2),
            "boxes of {} do not fit scores of {}", to_string(boxes.shape()), to_string(scores.shape()));
    const bool center = context.attributes().get_int("center_point_box", 0) != 0;
    const bool limited = context.has_input(2) && context.input(2).size() > 0;
    const int64_t most = limited ? context.input(2).to_ints()[0] : 0;
    const float iou_threshold = number_or(context, 3, 0);
    const float score_threshold = number_or(context, 4, 0);
    const bool filters = context.has_input(4) && context.input(4).size() > 0;
    std::vector<int64_t> rows;
    for (int64_t batch = 0; batch < boxes.dim(0); ++batch) {
        std::vector<Box> found;
        for (int64_t i = 0; i < boxes.dim(1); ++i)
            found.push_back(box_at(boxes.as<float>().data() + (batch * boxes.dim(1) + i) * 4, center));
        for (int64_t kind = 0; kind < scores.dim(1); ++kind) {
            const float* row = scores.as<float>().data() + (batch * scores.dim(1) + kind) * scores.dim(2);
            for (const int64_t box :
                 best_boxes(found, row, most, iou_threshold, filters ? &score_threshold : nullptr))
                rows.insert(rows.end(), {batch, kind, box});
        }
    }
    context.set_output(0, Tensor::of<int64_t>({static_cast<int64_t>(rows.size() / 3), 3}, rows));
}

KILTER_OP({.name = "NonMaxSuppression",
           .min_inputs = 2,
           .max_inputs = 5,
           .attributes = {{"center_point_box", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::non_max_suppression_op
