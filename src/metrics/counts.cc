#include "metrics/counts.h"

namespace kilter::metrics {

double ClassCounts::f1() const {
    const int64_t all = 2 * hits + false_ + missed;
    return all == 0 ? 0 : 2.0 * static_cast<double>(hits) / static_cast<double>(all);
}

void Counts::add(int64_t said, int64_t truth) {
    if (said == truth) {
        ++classes_[said].hits;
        return;
    }
    ++classes_[said].false_;
    ++classes_[truth].missed;
}

void Counts::add_label(int64_t label, bool said, bool truth) {
    ClassCounts& counts = classes_[label];
    counts.hits += said && truth;
    counts.false_ += said && !truth;
    counts.missed += !said && truth;
}

double Counts::f1(const std::string& average) const {
    ClassCounts total;
    double sum = 0, weights = 0;
    for (const auto& [id, counts] : classes_) {
        const double weight = average == "weighted" ? static_cast<double>(counts.hits + counts.missed) : 1;
        sum += weight * counts.f1();
        weights += weight;
        total.hits += counts.hits;
        total.false_ += counts.false_;
        total.missed += counts.missed;
    }
    if (average == "micro") return total.f1();
    return weights == 0 ? 0 : sum / weights;
}

}  // namespace kilter::metrics
