// What metrics read: rows of an output and the labels beside them, checked, with errors that name output and sample.
#pragma once

#include "kilter/metrics/metric.h"

namespace kilter::metrics {

//! The output a metric judges: `output` among its settings, the first one without it.
int64_t output_index(const Settings& settings);
//! An output with one entry per sample along its first axis; throws Error when there is none such.
const Tensor& checked_output(const std::vector<Tensor>& outputs, int64_t index, size_t samples);

//! Numbers of one output, one row per sample. None of them is NaN.
class Rows {
  public:
    //! `first` is the number of the first sample, for messages.
    Rows(const std::vector<Tensor>& outputs, int64_t index, size_t samples, size_t first);

    size_t size() const { return size_; }
    size_t width() const { return width_; }  // numbers in a row
    std::span<const double> operator[](size_t row) const { return {values_.data() + row * width_, width_}; }
    //! May the row hold one number per class? Only one axis after the first is longer than 1.
    bool is_vector() const { return long_axes_ <= 1; }
    DType dtype() const { return dtype_; }
    const Shape& shape() const { return shape_; }

  private:
    size_t size_, width_;
    int long_axes_;
    DType dtype_;
    Shape shape_;
    std::vector<double> values_;
};

//! The first of the largest.
int64_t arg_max(std::span<const double> scores);

//! An entry of a label; throws Error that lists what the label has.
const Tensor& label_entry(const Label& label, std::string_view name, size_t sample);
//! Its numbers; none is NaN.
std::vector<double> label_numbers(const Label& label, std::string_view name, size_t sample);
//! "label" as a class: a whole number, or the place of the only 1 in a row of `classes` zeros. `classes` 0: any number.
int64_t label_class(const Label& label, size_t sample, size_t classes = 0);

//! A whole number; throws Error that says what it stood for.
int64_t whole(double value, std::string_view what, size_t sample);

//! Classes that outputs name: ids as they are ([n], or one integer per row), the largest of several scores otherwise.
//! One floating-point number per row is class 1 when it is at least `threshold`, and class 0 otherwise.
std::vector<int64_t> predicted_classes(const Rows& rows, double threshold, size_t first);

//! Metrics that are the mean of what each sample scored.
class MeanMetric : public Metric {
  public:
    void reset() override { scores_.clear(); }
    double result() const override;
    std::vector<double> per_sample() const override { return scores_; }

  protected:
    std::vector<double> scores_;
};

//! The one of `words` that the settings give under `key`; the first one without it. Throws Error that lists them.
std::string one_of(const Settings& settings, std::string_view key,
                   std::initializer_list<std::string_view> words);

//! Throws Error when a metric is asked before it saw anything.
void require_samples(size_t samples);

}  // namespace kilter::metrics
