// Short ways to make outputs and labels for metrics, and to read what an error says.
#pragma once

#include "kilter/base/error.h"
#include "kilter/metrics/metric.h"

namespace kilter {

inline Label class_label(int64_t id) { return {{"label", Tensor::scalar<int64_t>(id)}}; }

inline std::vector<Label> class_labels(const std::vector<int64_t>& ids) {
    std::vector<Label> labels;
    for (const int64_t id : ids) labels.push_back(class_label(id));
    return labels;
}

inline std::vector<Tensor> floats(Shape shape, const std::vector<float>& values) {
    return {Tensor::of<float>(std::move(shape), values)};
}

//! What the metric says of one batch.
inline double judged(const Component& component, const std::vector<Tensor>& outputs,
                     const std::vector<Label>& labels) {
    const auto metric = make_metric(component);
    metric->update(outputs, labels);
    return metric->result();
}

//! Message and hint of the Error that `work` throws.
std::string error_of(auto&& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.hint().empty() ? error.what() : std::string(error.what()) + " | " + error.hint();
    }
    return "no error";
}

}  // namespace kilter
