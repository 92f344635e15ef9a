// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: how badly class scores [N, C, …] fit labels [N, …].
#include <cmath>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::loss_op {

std::string reduction_of(const Attributes& attributes) {
    std::string reduction = attributes.get_string("reduction", "mean");
    require(reduction == "none" || reduction == "sum" || reduction == "mean",
            "attribute 'reduction' must be none, sum or mean, found '{}'", reduction);
    return reduction;
}

Dims loss_dims(const Attributes& attributes, const Dims& scores, const std::optional<Dims>& labels,
               const std::optional<Dims>& weights) {
    require(scores.size() >= 2, "the scores must have shape [N, C, …], found {}", to_string(scores));
    Dims result = scores;
    result.erase(result.begin() + 1);
    bool fits = !labels || labels->size() == result.size();
    for (size_t i = 0; labels && fits && i < result.size(); ++i) fits = agree((*labels)[i], result[i]);
    require(fits, "the labels must have shape {}, found {}", to_string(result),
            labels ? to_string(*labels) : "");
    require_vector(weights, scores[1], "the class weights");
    return reduction_of(attributes) == "none" ? result : Dims();
}

void infer(InferContext& context) {
    context.same_as_input(1, 0);  // log-probabilities, where the operator gives them
    if (!context.shape(0)) return context.set_output(0, context.dtype(0));
    context.set_output(
        0, context.dtype(0),
        loss_dims(context.attributes(), *context.shape(0), context.shape(1), context.shape(2)));
}

// Replaces scores by their log-softmax along the classes.
void take_log_softmax(Tensor& scores, int64_t classes, int64_t plane) {
    for (int64_t line = 0; line < scores.size() / classes; ++line) {
        double* first = scores.as_mutable<double>().data() + line / plane * classes * plane + line % plane;
        double largest = first[0];
        for (int64_t c = 1; c < classes; ++c) largest = std::max(largest, first[c * plane]);
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) sum += std::exp(first[c * plane] - largest);
        for (int64_t c = 0; c < classes; ++c) first[c * plane] -= largest + std::log(sum);
    }
}

void run(KernelContext& context, bool softmax) {
    const Tensor& input = needed(context, 0, "the scores");
    require_real(input.dtype(), "the scores");
    const std::vector<int64_t> labels = needed(context, 1, "the labels").to_ints();
    const Attributes& attributes = context.attributes();
    loss_dims(attributes, to_dims(input.shape()), optional_dims(context, 1), optional_dims(context, 2));
    const std::string reduction = reduction_of(attributes);
    const int64_t classes = input.dim(1);
    const int64_t plane = input.size() == 0 ? 1 : extent(input.shape(), 2, input.shape().size());
    Tensor scores = to_reals(input).clone();
    if (softmax && scores.size() > 0) take_log_softmax(scores, classes, plane);
    const Tensor weights = context.has_input(2) ? to_reals(context.input(2)) : Tensor();
    Tensor losses = real_zeros(context.input(1).shape());
    double total = 0, weight_total = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
        const int64_t label = labels[i];
        if (attributes.has("ignore_index") && label == attributes.get_int("ignore_index")) continue;
        require(label >= 0 && label < classes, "label {} lies outside the {} classes", label, classes);
        const int64_t at =
            (static_cast<int64_t>(i) / plane * classes + label) * plane + static_cast<int64_t>(i) % plane;
        const double weight = weights.empty() ? 1.0 : weights.as<double>()[static_cast<size_t>(label)];
        losses.as_mutable<double>()[i] = -weight * scores.as<double>()[static_cast<size_t>(at)];
        total += losses.as<double>()[i];
        weight_total += weight;
    }
    if (reduction != "none") {
        losses = real_zeros({});
        losses.as_mutable<double>()[0] = reduction == "sum" ? total : total / weight_total;
    }
    store_reals(context, 0, input.dtype(), losses);
    if (softmax && context.wants_output(1)) store_reals(context, 1, input.dtype(), scores);
}

void likelihood(KernelContext& context) { run(context, false); }
void cross_entropy(KernelContext& context) { run(context, true); }

KILTER_OP({.name = "NegativeLogLikelihoodLoss",
           .min_inputs = 2,
           .max_inputs = 3,
           .attributes = {{"ignore_index", AttributeKind::integer}, {"reduction", AttributeKind::text}},
           .infer = infer,
           .kernel = likelihood});

KILTER_OP({.name = "SoftmaxCrossEntropyLoss",
           .min_inputs = 2,
           .max_inputs = 3,
           .max_outputs = 2,
           .attributes = {{"ignore_index", AttributeKind::integer}, {"reduction", AttributeKind::text}},
           .infer = infer,
           .kernel = cross_entropy});

}  // namespace kilter::loss_op
