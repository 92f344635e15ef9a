// Detected and true boxes of images, and average precision over them.
#pragma once

#include <memory>
#include <optional>

#include "kilter/metrics/metric.h"

namespace kilter::metrics {

struct Box {
    double x = 0, y = 0, width = 0, height = 0;
    double area() const { return width * height; }
};
//! Intersection over union; over the area of `a` when `b` is a crowd.
double overlap(const Box& a, const Box& b, bool crowd = false);

struct Truth {
    Box box;
    int64_t id = 0;  // class
    double area = 0;
    bool crowd = false;
    bool difficult = false;
};
struct Detection {
    Box box;
    int64_t id = 0;
    double score = 0;
};
struct Image {
    int64_t order = 0;  // images are judged in this order; only equal scores make a difference
    std::vector<Truth> truths;
    std::vector<Detection> detections;
};

struct Suppression;

//! Which outputs hold what, and how boxes are written.
class DetectionReader {
  public:
    explicit DetectionReader(const Settings& settings);
    ~DetectionReader();
    //! One batch; `first` is the number of its first sample.
    std::vector<Image> read(const std::vector<Tensor>& outputs, std::span<const Label> labels,
                            size_t first) const;

  private:
    struct Indices {
        int64_t count = -1, boxes = 0, scores = 1, classes = 2;
    };
    Indices indices(size_t outputs) const;
    //! Adds what one sample's boxes and scores say; `scale` is width and height of a unit.
    void add(Image& image, std::span<const double> boxes, std::span<const double> scores,
             std::span<const double> classes, std::pair<double, double> scale, size_t sample) const;
    Box box(std::span<const double> numbers) const;
    std::vector<Truth> truths(const Label& label, size_t sample) const;
    std::vector<double> class_ids(const Label& label, size_t sample) const;

    std::optional<Indices> indices_;
    std::unique_ptr<const Suppression> suppression_;  // null: the model does it
    std::string format_;
    std::optional<bool> normalized_;
    std::vector<std::pair<std::string, int64_t>> class_names_;  // of anno_path
};

//! What is counted, beside the class.
struct Judging {
    std::vector<double> thresholds;  // of the overlap
    double least_area = 0, most_area = 1e10;
    size_t most_detections = 100;  // of one class in one image
    bool voc = false;              // a detection claims the box it covers best, claimed before or not
};

//! Precision over recall of every class and threshold.
struct Curve {
    std::vector<double> recall, precision;  // as detections are taken in, best score first
};
//! One for each class that has true boxes, then each threshold.
std::vector<Curve> curves(const std::vector<Image>& images, const Judging& judging);

//! Mean of the best precision at 0, …, 1 recall in `points` steps; with 0 points the area below the curve.
double average_precision(const Curve& curve, int points);

//! `count` numbers from `begin` to `end`, as NumPy's linspace rounds them.
std::vector<double> evenly_spaced(double begin, double end, int count);

}  // namespace kilter::metrics
