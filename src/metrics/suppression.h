// Non-maximum suppression for detectors that leave it to the caller: scores of every class for every box.
#pragma once

#include <optional>

#include "metrics/detection.h"

namespace kilter::metrics {

struct Suppression {
    double overlap = 0.6;  // of a box with a better one of its class, above which it is dropped
    double least_score = 0.01;
    int64_t first_class = 1;  // number of the class that the first score of a box is for
    size_t most = 100;        // detections of one class in one image

    //! The setting 'nms': an overlap, or {iou, score, first_class, most}.
    static std::optional<Suppression> from(const Settings& settings);
};

//! The detections of one image, best first within each class. `scores` are [boxes, classes].
std::vector<Detection> suppress(const std::vector<Box>& boxes, std::span<const double> scores,
                                const Suppression& how);

}  // namespace kilter::metrics
