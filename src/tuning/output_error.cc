#include "tuning/output_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kilter {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool are_class_scores(const Tensor& tensor) {
    // Several figures per sample and nothing else: [samples, classes], further axes of one element allowed.
    if (tensor.rank() < 2 || tensor.dim(1) < 2) return false;
    return std::all_of(tensor.shape().begin() + 2, tensor.shape().end(),
                       [](int64_t size) { return size == 1; });
}

bool is_probability(std::span<const double> row) {
    double sum = 0;
    for (const double value : row) {
        if (value < 0 || value > 1) return false;
        sum += value;
    }
    return std::abs(sum - 1) < 1e-3;
}

std::vector<double> softmax(std::span<const double> row) {
    const double largest = *std::ranges::max_element(row);
    std::vector<double> result;
    double sum = 0;
    for (const double value : row) sum += result.emplace_back(std::exp(value - largest));
    for (double& value : result) value /= sum;
    return result;
}

double divergence(std::span<const double> p, std::span<const double> q) {
    constexpr double kLeast = 1e-12;
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i)
        if (p[i] > kLeast) sum += p[i] * std::log(p[i] / std::max(q[i], kLeast));
    return std::max(sum, 0.0);
}

double error_of(const Tensor& reference, const Tensor& output) {
    const std::vector<double> a = reference.to_doubles();
    const std::vector<double> b = output.to_doubles();
    if (a.size() != b.size()) return kInfinite;
    if (!std::ranges::all_of(b, [](double value) { return std::isfinite(value); })) return kInfinite;
    if (are_class_scores(reference)) {
        const auto classes = static_cast<size_t>(reference.dim(1));
        double sum = 0;
        for (size_t i = 0; i < a.size(); i += classes) {
            const std::span<const double> p(a.data() + i, classes), q(b.data() + i, classes);
            sum += is_probability(p) && is_probability(q) ? divergence(p, q)
                                                          : divergence(softmax(p), softmax(q));
        }
        return sum / static_cast<double>(reference.dim(0));
    }
    double signal = 0, noise = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (!std::isfinite(a[i])) continue;
        signal += a[i] * a[i];
        noise += (a[i] - b[i]) * (a[i] - b[i]);
    }
    if (noise == 0) return 0;
    return signal > 0 ? noise / signal : kInfinite;
}

}  // namespace

double output_error(const std::vector<Tensor>& reference, const std::vector<Tensor>& outputs) {
    double sum = 0;
    for (size_t i = 0; i < reference.size(); ++i)
        if (is_float(reference[i].dtype())) sum += error_of(reference[i], outputs.at(i));
    return sum;
}

}  // namespace kilter
