#include "metrics/detection.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "config/yaml.h"
#include "metrics/rows.h"
#include "metrics/suppression.h"

namespace kilter::metrics {
namespace {

// Boxes whose coordinates all lie within this are fractions of the image: as pixels they would be specks in its corner.
constexpr double kLargestFraction = 2;

double largest(std::span<const double> values) {
    double most = 0;
    for (const double value : values) most = std::max(most, std::abs(value));
    return most;
}

const Tensor& output_at(const std::vector<Tensor>& outputs, int64_t index, std::string_view what) {
    require(index >= 0 && index < static_cast<int64_t>(outputs.size()),
            "{} are output {}, the model has {} outputs", what, index, outputs.size());
    return outputs[static_cast<size_t>(index)];
}

// [samples, detections…]; one sample may do without the first axis.
std::vector<double> numbers(const Tensor& output, std::string_view what, size_t samples, size_t first) {
    require(output.dtype() != DType::string, "{} are text, expected numbers", what);
    require(samples == 1 || (output.rank() > 0 && output.dim(0) == static_cast<int64_t>(samples)),
            "{} have the shape {}, expected {} samples along the first axis", what, to_string(output.shape()),
            samples);
    std::vector<double> values = output.to_doubles();
    for (size_t i = 0; i < values.size(); ++i)
        require(!std::isnan(values[i]), "{} are NaN for sample {}", what,
                first + i * samples / values.size());
    return values;
}

}  // namespace

double overlap(const Box& a, const Box& b, bool crowd) {
    const double width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
    const double height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
    if (width <= 0 || height <= 0) return 0;
    const double both = width * height;
    return both / (crowd ? a.area() : a.area() + b.area() - both);
}

DetectionReader::DetectionReader(const Settings& settings)
    : format_(one_of(settings, "box_format", {"yxyx", "xyxy", "xywh"})) {
    if (settings.has("normalized")) normalized_ = settings.get("normalized").as_bool();
    if (const Settings* mapping = settings.find("output_index_mapping")) {
        mapping->allow_keys({"num_detections", "boxes", "scores", "classes"});
        indices_ = Indices{mapping->get("num_detections", -1), mapping->get("boxes", 0),
                           mapping->get("scores", 1), mapping->get("classes", 2)};
    }
    if (const std::optional<Suppression> how = Suppression::from(settings))
        suppression_ = std::make_unique<Suppression>(*how);
    const Settings* path = settings.find("anno_path");
    if (path == nullptr || path->is_null()) return;
    const Settings names = read_yaml(path->as_text());
    for (const auto& [name, id] : names.as_map()) class_names_.emplace_back(name, id.as_int());
}

DetectionReader::~DetectionReader() = default;

DetectionReader::Indices DetectionReader::indices(size_t outputs) const {
    if (indices_) return *indices_;
    if (suppression_ && outputs == 2) return {-1, 0, 1, -1};
    if (outputs == 3) return {-1, 0, 1, 2};
    if (outputs == 4) return {0, 1, 2, 3};
    throw Error(
        fmt::format(
            "detections come in 3 outputs (boxes, scores, classes) or 4 (their number first), the model has {}",
            outputs),
        "'output_index_mapping' tells which output is which; with 'nms' boxes and scores of classes are enough");
}

Box DetectionReader::box(std::span<const double> n) const {
    if (format_ == "xywh") return {n[0], n[1], n[2], n[3]};
    if (format_ == "xyxy") return {n[0], n[1], n[2] - n[0], n[3] - n[1]};
    return {n[1], n[0], n[3] - n[1], n[2] - n[0]};
}

std::vector<double> DetectionReader::class_ids(const Label& label, size_t sample) const {
    // With a file of names those of the label count, as in the old tool; otherwise its numbers.
    const bool by_name =
        label.contains("class_names") && (!class_names_.empty() || !label.contains("classes"));
    const Tensor& classes = label_entry(label, by_name ? "class_names" : "classes", sample);
    if (classes.dtype() != DType::string) return label_numbers(label, "classes", sample);
    std::vector<double> ids;
    for (const std::string& name : classes.as_strings()) {
        const auto found = std::ranges::find(class_names_, name, &std::pair<std::string, int64_t>::first);
        if (found == class_names_.end())
            throw Error(fmt::format("sample {} has the class '{}', which has no number", sample, name),
                        "'anno_path' names a YAML file with a number for every class");
        ids.push_back(static_cast<double>(found->second));
    }
    return ids;
}

std::vector<Truth> DetectionReader::truths(const Label& label, size_t sample) const {
    const std::vector<double> boxes = label_numbers(label, "boxes", sample);
    const std::vector<double> ids = class_ids(label, sample);
    require(boxes.size() == 4 * ids.size(), "sample {}: 'boxes' has {} numbers for {} 'classes'", sample,
            boxes.size(), ids.size());
    const auto optional = [&](std::string_view name) {
        std::vector<double> values;
        if (label.contains(name)) values = label_numbers(label, name, sample);
        require(values.empty() || values.size() == ids.size(),
                "sample {}: '{}' has {} numbers for {} 'classes'", sample, name, values.size(), ids.size());
        return values;
    };
    const std::vector<double> areas = optional("area"), crowd = optional("iscrowd"),
                              difficult = optional("difficult");
    std::vector<Truth> result;
    for (size_t i = 0; i < ids.size(); ++i) {
        const double* n = &boxes[4 * i];
        Truth truth;
        truth.box = {n[1], n[0], n[3] - n[1], n[2] - n[0]};
        truth.id = whole(ids[i], "'classes'", sample);
        truth.area = areas.empty() ? truth.box.area() : areas[i];
        truth.crowd = !crowd.empty() && crowd[i] != 0;
        truth.difficult = !difficult.empty() && difficult[i] != 0;
        result.push_back(truth);
    }
    return result;
}

void DetectionReader::add(Image& image, std::span<const double> boxes, std::span<const double> scores,
                          std::span<const double> classes, std::pair<double, double> scale,
                          size_t sample) const {
    std::vector<Box> scaled;
    for (size_t i = 0; 4 * i < boxes.size(); ++i) {
        const Box b = box(boxes.subspan(4 * i, 4));
        scaled.push_back(
            {b.x * scale.first, b.y * scale.second, b.width * scale.first, b.height * scale.second});
    }
    if (suppression_) {
        image.detections = suppress(scaled, scores, *suppression_);
        return;
    }
    for (size_t i = 0; i < scaled.size(); ++i)
        image.detections.push_back({scaled[i], whole(classes[i], "the class", sample), scores[i]});
}

std::vector<Image> DetectionReader::read(const std::vector<Tensor>& outputs, std::span<const Label> labels,
                                         size_t first) const {
    const size_t samples = labels.size();
    std::vector<Image> images(samples);
    if (samples == 0) return images;
    const Indices at = indices(outputs.size());
    const std::vector<double> boxes = numbers(output_at(outputs, at.boxes, "boxes"), "boxes", samples, first);
    const std::vector<double> scores =
        numbers(output_at(outputs, at.scores, "scores"), "scores", samples, first);
    std::vector<double> classes;
    if (!suppression_)
        classes = numbers(output_at(outputs, at.classes, "classes"), "classes", samples, first);
    const size_t all = boxes.size() / 4;
    require(boxes.size() % 4 == 0 && all % samples == 0, "boxes have {} numbers; expected four for every box",
            boxes.size());
    require(suppression_ || (all == scores.size() && all == classes.size()),
            "there are {} numbers for boxes, {} scores and {} classes; expected four numbers for every box",
            boxes.size(), scores.size(), classes.size());
    require(!suppression_ || (all > 0 && scores.size() % all == 0),
            "there are {} boxes and {} scores; expected as many scores of classes for each", all,
            scores.size());
    const size_t each = all / samples;
    const size_t per_box = all == 0 ? 1 : scores.size() / all;
    std::vector<double> counts(samples, static_cast<double>(each));
    if (at.count >= 0)
        counts = numbers(output_at(outputs, at.count, "numbers of detections"), "numbers of detections",
                         samples, first);
    require(counts.size() == samples, "there are {} numbers of detections for {} samples", counts.size(),
            samples);
    const bool fractions = normalized_.value_or(largest(boxes) <= kLargestFraction);
    for (size_t i = 0; i < samples; ++i) {
        const Label& label = labels[i];
        images[i].order =
            label.contains("image_id") && label.find("image_id")->second.dtype() != DType::string
                ? whole(label_numbers(label, "image_id", first + i).at(0), "'image_id'", first + i)
                : static_cast<int64_t>(first + i);
        images[i].truths = truths(label, first + i);
        std::pair<double, double> scale(1, 1);
        if (fractions && largest(label_numbers(label, "boxes", first + i)) > kLargestFraction) {
            const std::vector<double> size = label_numbers(label, "image_size", first + i);
            require(size.size() >= 2, "'image_size' of sample {} is not [height, width]", first + i);
            scale = {size[1], size[0]};
        }
        const size_t count = static_cast<size_t>(std::clamp(counts[i], 0.0, static_cast<double>(each)));
        const size_t begin = i * each;
        add(images[i], std::span(boxes).subspan(4 * begin, 4 * count),
            std::span(scores).subspan(per_box * begin, per_box * count),
            std::span(classes).subspan(classes.empty() ? 0 : begin, classes.empty() ? 0 : count), scale,
            first + i);
    }
    return images;
}

}  // namespace kilter::metrics
