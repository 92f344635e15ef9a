// Matching detections with true boxes as COCO does it (pycocotools gives the same numbers) or as VOC does, and what follows.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "metrics/detection.h"

namespace kilter::metrics {
namespace {

// What became of a detection at one threshold.
enum class Fate : uint8_t { wrong, right, ignored };

struct Judged {
    double score;
    std::vector<Fate> fates;  // for each threshold
};

// Detections and true boxes of one class in one image.
struct Part {
    std::vector<const Truth*> truths;  // those that count first
    std::vector<bool> ignored;         // of truths
    std::vector<const Detection*> detections;
};

Part part_of(const Image& image, int64_t id, const Judging& judging) {
    std::vector<const Truth*> counted, others;
    for (const Truth& truth : image.truths) {
        if (truth.id != id) continue;
        const bool ignored = truth.crowd || truth.difficult || truth.area < judging.least_area ||
                             truth.area > judging.most_area;
        (ignored ? others : counted).push_back(&truth);
    }
    Part part;
    part.ignored.assign(counted.size(), false);
    part.ignored.resize(counted.size() + others.size(), true);
    part.truths = std::move(counted);
    part.truths.insert(part.truths.end(), others.begin(), others.end());
    for (const Detection& detection : image.detections)
        if (detection.id == id) part.detections.push_back(&detection);
    std::ranges::stable_sort(part.detections, std::greater(), &Detection::score);
    if (!judging.voc && part.detections.size() > judging.most_detections)
        part.detections.resize(judging.most_detections);
    return part;
}

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// The free box with the largest overlap; boxes that count before those that do not. Crowds are never used up.
size_t coco_match(const Part& part, std::span<const double> overlaps, const std::vector<bool>& taken,
                  double threshold) {
    double best = std::min(threshold, 1 - 1e-10);
    size_t match = kNone;
    for (size_t t = 0; t < part.truths.size(); ++t) {
        if (taken[t] && !part.truths[t]->crowd) continue;
        if (match != kNone && !part.ignored[match] && part.ignored[t]) break;
        if (overlaps[t] < best) continue;
        best = overlaps[t];
        match = t;
    }
    return match;
}

size_t voc_match(std::span<const double> overlaps, double threshold) {
    const auto best = std::max_element(overlaps.begin(), overlaps.end());
    return best == overlaps.end() || *best < threshold ? kNone : static_cast<size_t>(best - overlaps.begin());
}

void judge(const Part& part, const Judging& judging, std::vector<Judged>& all) {
    const size_t first = all.size();
    std::vector<std::vector<double>> overlaps;
    for (const Detection* detection : part.detections) {
        all.push_back({detection->score, {}});
        overlaps.emplace_back();
        for (const Truth* truth : part.truths)
            overlaps.back().push_back(overlap(detection->box, truth->box, truth->crowd));
    }
    for (const double threshold : judging.thresholds) {
        std::vector<bool> taken(part.truths.size(), false);
        for (size_t d = 0; d < part.detections.size(); ++d) {
            const size_t match = judging.voc ? voc_match(overlaps[d], threshold)
                                             : coco_match(part, overlaps[d], taken, threshold);
            const double area = part.detections[d]->box.area();
            Fate fate = Fate::wrong;
            if (match == kNone)
                fate = area < judging.least_area || area > judging.most_area ? Fate::ignored : Fate::wrong;
            else if (part.ignored[match])
                fate = Fate::ignored;
            else if (!taken[match])
                fate = Fate::right;
            if (match != kNone) taken[match] = true;
            all[first + d].fates.push_back(fate);
        }
    }
}

Curve curve_of(const std::vector<Judged>& detections, size_t threshold, size_t positives) {
    Curve curve;
    double right = 0, wrong = 0;
    for (const Judged& judged : detections) {
        right += judged.fates[threshold] == Fate::right;
        wrong += judged.fates[threshold] == Fate::wrong;
        curve.recall.push_back(right / static_cast<double>(positives));
        curve.precision.push_back(right / (right + wrong + std::numeric_limits<double>::epsilon()));
    }
    // The best precision that is still reached at this recall or a higher one.
    for (size_t i = curve.precision.size(); i-- > 1;)
        curve.precision[i - 1] = std::max(curve.precision[i - 1], curve.precision[i]);
    return curve;
}

}  // namespace

std::vector<Curve> curves(const std::vector<Image>& images, const Judging& judging) {
    std::vector<const Image*> ordered;
    for (const Image& image : images) ordered.push_back(&image);
    std::ranges::stable_sort(ordered, {}, &Image::order);
    std::map<int64_t, std::vector<Judged>> judged;  // every class that occurs
    std::map<int64_t, size_t> positives;
    for (const Image& image : images)
        for (const Truth& truth : image.truths) judged[truth.id];
    for (auto& [id, all] : judged) {
        for (const Image* image : ordered) {
            const Part part = part_of(*image, id, judging);
            positives[id] += static_cast<size_t>(std::ranges::count(part.ignored, false));
            judge(part, judging, all);
        }
        std::ranges::stable_sort(all, std::greater(), &Judged::score);
    }
    std::vector<Curve> result;
    for (const auto& [id, all] : judged)
        for (size_t t = 0; t < judging.thresholds.size() && positives[id] > 0; ++t)
            result.push_back(curve_of(all, t, positives[id]));
    return result;
}

double average_precision(const Curve& curve, int points) {
    double sum = 0;
    if (points == 0) {
        double before = 0;
        for (size_t i = 0; i < curve.recall.size(); ++i) {
            sum += (curve.recall[i] - before) * curve.precision[i];
            before = curve.recall[i];
        }
        return sum;
    }
    for (const double recall : evenly_spaced(0, 1, points)) {
        const auto reached = std::ranges::lower_bound(curve.recall, recall);
        if (reached != curve.recall.end())
            sum += curve.precision[static_cast<size_t>(reached - curve.recall.begin())];
    }
    return sum / points;
}

std::vector<double> evenly_spaced(double begin, double end, int count) {
    std::vector<double> values;
    const double step = count > 1 ? (end - begin) / (count - 1) : 0;
    for (int i = 0; i < count; ++i) values.push_back(i + 1 == count && count > 1 ? end : begin + i * step);
    return values;
}

}  // namespace kilter::metrics
