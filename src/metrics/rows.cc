#include "metrics/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/fail.h"

namespace kilter::metrics {

int64_t output_index(const Settings& settings) {
    const int64_t index = settings.get("output", 0);
    if (index < 0) settings.get("output").reject("the number of an output, counted from 0");
    return index;
}

const Tensor& checked_output(const std::vector<Tensor>& outputs, int64_t index, size_t samples) {
    require(index < static_cast<int64_t>(outputs.size()),
            "the metric judges output {}, the model has {} outputs", index, outputs.size());
    const Tensor& output = outputs[static_cast<size_t>(index)];
    require(output.rank() > 0 && output.dim(0) == static_cast<int64_t>(samples),
            "output {} has the shape {}, expected {} samples along its first axis", index,
            to_string(output.shape()), samples);
    return output;
}

Rows::Rows(const std::vector<Tensor>& outputs, int64_t index, size_t samples, size_t first) {
    const Tensor& output = checked_output(outputs, index, samples);
    require(output.dtype() != DType::string, "output {} holds text, expected numbers", index);
    size_ = samples;
    width_ = samples == 0 ? 0 : static_cast<size_t>(output.size()) / samples;
    long_axes_ = static_cast<int>(
        std::count_if(output.shape().begin() + 1, output.shape().end(), [](int64_t d) { return d != 1; }));
    dtype_ = output.dtype();
    shape_ = output.shape();
    values_ = output.to_doubles();
    for (size_t i = 0; i < values_.size(); ++i)
        if (std::isnan(values_[i]))
            throw NotANumber(fmt::format("output {} is NaN for sample {} (place {} of its {} numbers)", index,
                                         first + i / width_, i % width_, width_));
}

int64_t arg_max(std::span<const double> scores) {
    return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

const Tensor& label_entry(const Label& label, std::string_view name, size_t sample) {
    const auto found = label.find(name);
    if (found != label.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [key, value] : label) names.push_back(key);
    throw Error(
        fmt::format(
            "sample {} has no '{}', {}", sample, name,
            names.empty() ? "it has no label at all" : fmt::format("only {}", fmt::join(names, ", "))),
        names.empty() ? "say what is true of the samples: --labels FILE, or labels of the dataset" : "");
}

std::vector<double> label_numbers(const Label& label, std::string_view name, size_t sample) {
    const Tensor& entry = label_entry(label, name, sample);
    require(entry.dtype() != DType::string, "'{}' of sample {} is text, expected numbers", name, sample);
    std::vector<double> values = entry.to_doubles();
    for (const double value : values) require(!std::isnan(value), "'{}' of sample {} is NaN", name, sample);
    return values;
}

int64_t whole(double value, std::string_view what, size_t sample) {
    require(value == std::trunc(value) && std::abs(value) < 9e15,
            "{} of sample {} is {}, expected a class: a whole number", what, sample, value);
    return static_cast<int64_t>(value);
}

int64_t label_class(const Label& label, size_t sample, size_t classes) {
    const std::vector<double> values = label_numbers(label, "label", sample);
    if (values.size() == 1) {
        const int64_t id = whole(values[0], "'label'", sample);
        if (classes > 0 && (id < 0 || id >= static_cast<int64_t>(classes)))
            throw Error(fmt::format("'label' of sample {} is {}, the model tells classes 0 to {} apart",
                                    sample, id, classes - 1),
                        "when labels count from 1, the post-process transform LabelShift subtracts 1");
        return id;
    }
    const bool one_hot = values.size() == classes &&
                         std::ranges::count(values, 0.0) == static_cast<int64_t>(classes) - 1 &&
                         std::ranges::count(values, 1.0) == 1;
    require(one_hot, "'label' of sample {} has {} numbers, expected one class{}", sample, values.size(),
            classes > 1 ? fmt::format(" or {} numbers that are 0 but for one 1", classes) : "");
    return arg_max(values);
}

std::vector<int64_t> predicted_classes(const Rows& rows, double threshold, size_t first) {
    require(rows.is_vector() && (rows.width() > 0 || rows.size() == 0),
            "the output has the shape {}, expected [samples, classes] or [samples]", to_string(rows.shape()));
    std::vector<int64_t> classes;
    for (size_t i = 0; i < rows.size(); ++i) {
        if (rows.width() > 1)
            classes.push_back(arg_max(rows[i]));
        else if (is_float(rows.dtype()))
            classes.push_back(rows[i][0] >= threshold ? 1 : 0);
        else
            classes.push_back(whole(rows[i][0], "the output", first + i));
    }
    return classes;
}

double MeanMetric::result() const {
    require_samples(scores_.size());
    return std::accumulate(scores_.begin(), scores_.end(), 0.0) / static_cast<double>(scores_.size());
}

std::string one_of(const Settings& settings, std::string_view key,
                   std::initializer_list<std::string_view> words) {
    const std::string word = settings.get(key, *words.begin());
    if (std::ranges::find(words, word) == words.end())
        settings.get(key).reject(fmt::format("one of {}", fmt::join(words, ", ")));
    return word;
}

void require_samples(size_t samples) {
    require(samples > 0, "the metric saw no samples, so it has no result");
}

}  // namespace kilter::metrics
