#include "metrics/ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kilter::metrics {

std::vector<double> ranks(std::span<const double> values) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
    std::vector<double> result(values.size());
    for (size_t begin = 0; begin < order.size();) {
        size_t end = begin;
        while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
        const double shared = (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
        for (; begin < end; ++begin) result[order[begin]] = shared;
    }
    return result;
}

double correlation(std::span<const double> a, std::span<const double> b) {
    const double n = static_cast<double>(a.size());
    const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
    const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
    double both = 0, square_a = 0, square_b = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        both += (a[i] - mean_a) * (b[i] - mean_b);
        square_a += (a[i] - mean_a) * (a[i] - mean_a);
        square_b += (b[i] - mean_b) * (b[i] - mean_b);
    }
    const double scale = std::sqrt(square_a) * std::sqrt(square_b);
    return scale == 0 ? 0 : both / scale;
}

}  // namespace kilter::metrics
