// mAP, COCOmAP and VOCmAP: mean average precision of detections, over classes and overlap thresholds.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "base/fail.h"
#include "metrics/detection.h"
#include "metrics/metrics.h"
#include "metrics/rows.h"

namespace kilter::metrics {
namespace {

// "0.5:0.05:0.95", or one number.
std::vector<double> thresholds(const Settings& settings, std::vector<double> fallback) {
    const Settings* value = settings.find("iou_thrs");
    if (value == nullptr) return fallback;
    std::vector<double> parts;
    if (value->is_text()) {
        const std::string& text = value->as_text();
        for (size_t begin = 0; begin <= text.size();) {
            const size_t end = std::min(text.find(':', begin), text.size());
            double part = 0;
            const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, part);
            if (error != std::errc() || stop != text.data() + end)
                value->reject("a number or begin:step:end");
            parts.push_back(part);
            begin = end + 1;
        }
    } else {
        parts.push_back(value->as_number());
    }
    for (const double part : parts)
        if (!(part > 0 && part <= 1)) value->reject("thresholds above 0 and up to 1");
    if (parts.size() == 1) return parts;
    if (parts.size() != 3 || parts[2] < parts[0] || parts[1] < 1e-4)
        value->reject("a number or begin:step:end");
    return evenly_spaced(parts[0], parts[2],
                         static_cast<int>(std::lround((parts[2] - parts[0]) / parts[1])) + 1);
}

int map_points(const Settings& settings, int fallback) {
    const int64_t points = settings.get("map_points", fallback);
    if (points != 0 && points != 11 && points != 101) settings.get("map_points").reject("0, 11 or 101");
    return static_cast<int>(points);
}

class MeanAveragePrecision : public Metric {
  public:
    MeanAveragePrecision(const Settings& settings, std::vector<double> default_thresholds, int default_points)
        : points_(map_points(settings, default_points)), reader_(settings) {
        settings.allow_keys({"iou_thrs", "map_points", "map_key", "output_index_mapping", "box_format",
                             "normalized", "anno_path", "nms"});
        judging_.thresholds = thresholds(settings, std::move(default_thresholds));
        if (const Settings* key = settings.find("map_key")) choose(*key);
    }

    void reset() override { images_.clear(); }

    void update(const std::vector<Tensor>& outputs, std::span<const Label> labels) override {
        std::vector<Image> images = reader_.read(outputs, labels, images_.size());
        for (Image& image : images) images_.push_back(std::move(image));
    }

    double result() const override {
        require_samples(images_.size());
        const std::vector<Curve> all = curves(images_, judging_);
        require(!all.empty(), "no true box counts, so there is no average precision");
        double sum = 0;
        for (const Curve& curve : all)
            sum += recall_ ? (curve.recall.empty() ? 0 : curve.recall.back())
                           : average_precision(curve, points_);
        return sum / static_cast<double>(all.size());
    }

  protected:
    Judging judging_;

  private:
    // The twelve figures of COCO by the names that TensorFlow's object detection gives them.
    void choose(const Settings& setting) {
        std::string key = setting.as_text();
        constexpr std::string_view kPrecision = "DetectionBoxes_Precision/",
                                   kRecall = "DetectionBoxes_Recall/";
        if (key.starts_with(kPrecision)) key = key.substr(kPrecision.size());
        if (key.starts_with(kRecall)) key = key.substr(kRecall.size());
        constexpr double kSmall = 32.0 * 32, kLarge = 96.0 * 96;  // pixels
        if (key.ends_with(" (small)")) judging_.most_area = kSmall;
        if (key.ends_with(" (medium)"))
            std::tie(judging_.least_area, judging_.most_area) = std::pair(kSmall, kLarge);
        if (key.ends_with(" (large)")) judging_.least_area = kLarge;
        const bool by_size = key.ends_with("e)") || key.ends_with("m)") || key.ends_with("l)");
        if (by_size) key = key.substr(0, key.find(" ("));
        recall_ = key.starts_with("AR");
        if (key == "AR@1" && !by_size)
            judging_.most_detections = 1;
        else if (key == "AR@10" && !by_size)
            judging_.most_detections = 10;
        else if (key == "mAP@.50IOU" && !by_size)
            judging_.thresholds = {0.5};
        else if (key == "mAP@.75IOU" && !by_size)
            judging_.thresholds = {0.75};
        else if (key != "mAP" && key != "AR@100")
            setting.reject(
                "mAP, mAP@.50IOU, mAP@.75IOU, AR@1, AR@10 or AR@100, with (small), (medium) or (large) after mAP and AR@100");
    }

    int points_;
    bool recall_ = false;  // what share of the boxes was found at all, instead of precision
    DetectionReader reader_;
    std::vector<Image> images_;
};

class VocMap final : public MeanAveragePrecision {
  public:
    explicit VocMap(const Settings& settings) : MeanAveragePrecision(settings, {0.5}, 0) {
        judging_.voc = true;
    }
};

}  // namespace

Made make_map(const Settings& settings) {
    return std::make_unique<MeanAveragePrecision>(settings, std::vector{0.5}, 0);
}
Made make_coco_map(const Settings& settings) {
    return std::make_unique<MeanAveragePrecision>(settings, evenly_spaced(0.5, 0.95, 10), 101);
}
Made make_voc_map(const Settings& settings) { return std::make_unique<VocMap>(settings); }

}  // namespace kilter::metrics
