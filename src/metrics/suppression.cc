#include "metrics/suppression.h"

#include <algorithm>

namespace kilter::metrics {

std::optional<Suppression> Suppression::from(const Settings& settings) {
    const Settings* given = settings.find("nms");
    if (given == nullptr || given->is_null()) return std::nullopt;
    Suppression how;
    if (given->is_map()) {
        given->allow_keys({"iou", "score", "first_class", "most"});
        how.overlap = given->get("iou", how.overlap);
        how.least_score = given->get("score", how.least_score);
        how.first_class = given->get("first_class", how.first_class);
        const int64_t most = given->get("most", static_cast<int64_t>(how.most));
        if (most < 1) given->get("most").reject("a number above 0");
        how.most = static_cast<size_t>(most);
    } else {
        how.overlap = given->as_number();
    }
    if (!(how.overlap > 0 && how.overlap <= 1)) given->reject("an overlap above 0 and up to 1");
    return how;
}

std::vector<Detection> suppress(const std::vector<Box>& boxes, std::span<const double> scores,
                                const Suppression& how) {
    std::vector<Detection> kept;
    const size_t classes = boxes.empty() ? 0 : scores.size() / boxes.size();
    for (size_t c = 0; c < classes; ++c) {
        std::vector<size_t> order;
        for (size_t i = 0; i < boxes.size(); ++i)
            if (scores[i * classes + c] >= how.least_score) order.push_back(i);
        std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return scores[i * classes + c]; });
        const size_t begin = kept.size();
        for (const size_t i : order) {
            if (kept.size() - begin == how.most) break;
            const auto covers = [&](const Detection& better) {
                return overlap(boxes[i], better.box) > how.overlap;
            };
            if (std::any_of(kept.begin() + static_cast<std::ptrdiff_t>(begin), kept.end(), covers)) continue;
            kept.push_back({boxes[i], how.first_class + static_cast<int64_t>(c), scores[i * classes + c]});
        }
    }
    return kept;
}

}  // namespace kilter::metrics
