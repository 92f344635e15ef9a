#include "kilter/calibration/stats.h"

#include <algorithm>

#include "base/fail.h"

namespace kilter {

void ValueStats::merge(const ValueStats& other) {
    if (other.count == 0) return;
    if (count == 0) {
        *this = other;
    } else {
        require(channel_axis == other.channel_axis && sums.size() == other.sums.size(),
                "{} channels along axis {} here but {} along axis {} there: not the same model", sums.size(),
                channel_axis, other.sums.size(), other.channel_axis);
        count += other.count;
        min = std::min(min, other.min);
        max = std::max(max, other.max);
        for (size_t c = 0; c < channel_min.size(); ++c) {
            channel_min[c] = std::min(channel_min[c], other.channel_min[c]);
            channel_max[c] = std::max(channel_max[c], other.channel_max[c]);
        }
        for (size_t c = 0; c < sums.size(); ++c) sums[c].add(other.sums[c]);
        histogram.merge(other.histogram);
    }
    update_means();
}

void ValueStats::update_means() {
    ExactSum total;
    for (const ExactSum& sum : sums) total.add(sum);
    mean = total.value() / static_cast<double>(count);
    channel_mean.clear();
    if (channel_axis < 0) return;
    const double per_channel = static_cast<double>(count) / static_cast<double>(sums.size());
    for (const ExactSum& sum : sums) channel_mean.push_back(sum.value() / per_channel);
}

const ValueStats* Stats::find(std::string_view value) const {
    const auto entry = values.find(value);
    return entry == values.end() ? nullptr : &entry->second;
}

void Stats::merge(const Stats& other) {
    for (const auto& [name, seen] : other.values) {
        try {
            values[name].merge(seen);
        } catch (const Error& error) {
            throw error.in(fmt::format("value '{}'", name));
        }
    }
    samples += other.samples;
}

}  // namespace kilter
