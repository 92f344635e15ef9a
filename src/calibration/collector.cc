#include "calibration/collector.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "calibration/walk.h"

namespace kilter {
namespace {

// Work is cut at places that depend on shapes only, so that sums round alike with any number of threads. Below this size
// a second thread gains nothing, and every part costs one exact addition per channel.
constexpr int64_t kPartElements = 1 << 16;
// Values of one sample that the histogram counts at least, when there are more: an increment per value is what costs, and
// MobileNetV2 computes a value every nanosecond. Extremes, means and the histogram's range take in every value.
constexpr int64_t kCounted = 1 << 14;
constexpr int64_t kPiece = 1024;  // counted or passed over as one
// Scanned at a time: what stays in the first-level cache, but enough rows to make up for loading figures per channel.
constexpr int64_t kScanned = 4096, kScannedRows = 16;
constexpr int64_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

struct Collector::Tally {
    int64_t count = 0;
    int channel_axis = -1;
    std::vector<float> low, high;
    std::vector<ExactSum> sums;
    Counter counter;

    void start(int axis, int64_t channels) {
        if (low.empty()) {
            channel_axis = axis;
            low.assign(static_cast<size_t>(channels), kInfinity);
            high.assign(static_cast<size_t>(channels), -kInfinity);
            sums.resize(static_cast<size_t>(channels));
        }
        require(static_cast<int64_t>(low.size()) == channels, "internal error: {} channels became {}",
                low.size(), channels);
    }
};

struct Collector::Slot {
    std::vector<Tally> tallies;  // by index of the value
    std::vector<double> channel_sums;
};

class Collector::Loan {
  public:
    explicit Loan(Collector& owner) : owner_(owner) {
        const std::lock_guard lock(owner.mutex_);
        if (owner.idle_.empty()) {
            owner.slots_.push_back(std::make_unique<Slot>());
            owner.slots_.back()->tallies.resize(owner.known_.size());
            owner.idle_.push_back(owner.slots_.back().get());
        }
        slot_ = owner.idle_.back();
        owner.idle_.pop_back();
    }
    ~Loan() {
        const std::lock_guard lock(owner_.mutex_);
        owner_.idle_.push_back(slot_);
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    Slot& slot() { return *slot_; }

  private:
    Collector& owner_;
    Slot* slot_;
};

namespace {

// One part of an observation: units [begin, end) of the outermost dimension that is cut.
class Part {
  public:
    Part(const Walk& walk, std::vector<float>& low, std::vector<float>& high, std::vector<ExactSum>& sums,
         Counter& counter, std::vector<double>& channel_sums, int64_t stride)
        : walk_(walk),
          low_(low),
          high_(high),
          sums_(sums),
          counter_(counter),
          channel_sums_(channel_sums),
          stride_(stride) {
        counter_.prefetch();
    }

    //! False when a value is not finite.
    bool run(const float* data, int64_t begin, int64_t end) {
        if (walk_.channels_innermost()) {
            channel_sums_.assign(static_cast<size_t>(walk_.channels), 0);
            if (!rows(data, begin, end)) return false;
            for (size_t c = 0; c < channel_sums_.size(); ++c) sums_[c].add(channel_sums_[c]);
            return true;
        }
        return runs(data, begin, end);
    }

  private:
    // Of large values the histogram counts an even share: one of every `stride_` pieces, at places that jump about but are
    // the same for every sample.
    void count(const float* data, int64_t size, float largest) {
        counter_.cover(largest);
        for (int64_t at = 0; at < size; at += kPiece) {
            const int64_t number = piece_++;
            if (number % stride_ == 0) chosen_ = number + scatter(number) % stride_;
            if (number != chosen_) continue;
            counter_.count({data + at, static_cast<size_t>(std::min(kPiece, size - at))});
        }
    }

    static int64_t scatter(int64_t number) {
        return static_cast<int64_t>((static_cast<uint64_t>(number) * 0x9E3779B97F4A7C15U) >> 40);
    }

    // Calls visit(pointer) for every position of the dimensions [0, depth) whose numbers are [begin, end).
    template <class Visit>
    bool positions(const float* data, size_t depth, int64_t begin, int64_t end, const Visit& visit) const {
        for (int64_t number = begin; number < end; ++number) {
            int64_t offset = 0;
            int64_t channel = 0;
            int64_t rest = number;
            for (size_t axis = depth; axis-- > 0;) {
                const Walk::Dimension& dimension = walk_.dimensions[axis];
                const int64_t at = rest % dimension.size;
                rest /= dimension.size;
                offset += at * dimension.stride;
                if (dimension.channel) channel = at;
            }
            if (!visit(data + offset, channel)) return false;
        }
        return true;
    }

    // Channels-last: the number counts rows of the dimensions before the channels.
    bool rows(const float* data, int64_t begin, int64_t end) {
        const auto& dimensions = walk_.dimensions;
        const int64_t channels = walk_.channels;
        const bool dense = dimensions.size() == 2 && dimensions[0].stride == channels;
        const int64_t together = dense ? std::max(kScanned / channels, kScannedRows) : 1;
        for (int64_t row = begin; row < end; row += together) {
            const int64_t taken = std::min(together, end - row);
            const bool finite =
                positions(data, dimensions.size() - 1, row, row + 1, [&](const float* first, int64_t) {
                    const Scan scan = scan_rows(first, taken, channels, channels, low_.data(), high_.data(),
                                                channel_sums_.data());
                    if (!scan.finite) return false;
                    count(first, taken * channels, scan.largest);
                    return true;
                });
            if (!finite) return false;
        }
        return true;
    }

    // Every run of neighbours belongs to one channel.
    bool runs(const float* data, int64_t begin, int64_t end) {
        const int64_t length = walk_.dimensions.back().size;
        return positions(data, walk_.dimensions.size() - 1, begin, end,
                         [&](const float* run, int64_t channel) {
                             for (int64_t at = 0; at < length; at += kCounterTile)
                                 if (!tile(run + at, std::min<int64_t>(kCounterTile, length - at),
                                           static_cast<size_t>(channel)))
                                     return false;
                             return true;
                         });
    }

    bool tile(const float* data, int64_t size, size_t channel) {
        float low[kLanes], high[kLanes];
        double sum[kLanes] = {};
        std::fill_n(low, kLanes, kInfinity);
        std::fill_n(high, kLanes, -kInfinity);
        const int64_t whole = size / kLanes;
        Scan scan;
        if (whole > 0) scan = scan_rows(data, whole, kLanes, kLanes, low, high, sum);
        if (const int64_t rest = size % kLanes; rest > 0) {
            const Scan last = scan_rows(data + whole * kLanes, 1, kLanes, rest, low, high, sum);
            scan = {std::max(scan.largest, last.largest), scan.finite && last.finite};
        }
        if (!scan.finite) return false;
        double total = 0;
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            low_[channel] = std::min(low_[channel], low[lane]);
            high_[channel] = std::max(high_[channel], high[lane]);
            total += sum[lane];
        }
        sums_[channel].add(total);
        count(data, size, scan.largest);
        return true;
    }

    const Walk& walk_;
    std::vector<float>&low_, &high_;
    std::vector<ExactSum>& sums_;
    Counter& counter_;
    std::vector<double>& channel_sums_;
    int64_t stride_, piece_ = 0, chosen_ = 0;
};

// Throws unless the operator made infinities on purpose, as attention masks do: NaN and bad inputs never are.
void check_not_finite(const Observation& seen) {
    std::string_view found;
    for (const float value : dense_copy(seen.data, seen.shape, seen.strides)) {
        if (std::isinf(value)) found = value > 0 ? "infinity" : "-infinity";
        if (!std::isnan(value)) continue;
        found = "NaN";
        break;
    }
    if (seen.producer != nullptr && found != "NaN") return;
    if (seen.producer == nullptr) fail("input '{}' contains {}", seen.name, found);
    throw Error(fmt::format("{}: its result '{}' contains {}, its inputs do not", describe(*seen.producer),
                            seen.name, found));
}

}  // namespace

Collector::Collector(const Graph& graph) {
    const auto know = [&](const Value* value) {
        if (value == nullptr || value->is_constant() || index_.contains(value->name())) return;
        index_.emplace(value->name(), known_.size());
        known_.push_back({value->name(), channel_axis(*value)});
    };
    for (const Value* value : graph.inputs()) know(value);
    for (const auto& node : graph.nodes())
        for (const Value* value : node->outputs()) know(value);
}

Collector::~Collector() = default;

void Collector::observe(const Observation& observation) {
    const auto entry = index_.find(observation.name);
    require(entry != index_.end(), "internal error: value '{}' is not in the graph", observation.name);
    const size_t index = entry->second;
    int64_t total = 1;
    for (const int64_t size : observation.shape) total *= size;
    if (total == 0) return;
    int axis = known_[index].channel_axis;
    if (axis >= static_cast<int>(observation.shape.size())) axis = -1;

    const float* data = observation.data;
    Walk walk(observation.shape, observation.strides, axis);
    std::vector<float> copy;
    if (!walk.contiguous) {
        copy = dense_copy(data, observation.shape, observation.strides);
        std::vector<int64_t> strides(observation.shape.size());
        int64_t stride = 1;
        for (size_t at = strides.size(); at-- > 0; stride *= observation.shape[at]) strides[at] = stride;
        walk = Walk(observation.shape, strides, axis);
        data = copy.data();
    }
    const int64_t unit = walk.dimensions.back().size;
    const int64_t units = total / unit;
    const int64_t units_per_part = std::max<int64_t>(kPartElements / unit, 1);
    const int64_t parts = (units + units_per_part - 1) / units_per_part;

    const int64_t sample = observation.shape.empty() ? 1 : total / observation.shape[0];
    const int64_t stride = std::max<int64_t>(sample / kCounted, 1);
    std::atomic<bool> finite = true;
    const auto work = [&](int64_t part) {
        Loan loan(*this);
        Tally& tally = loan.slot().tallies[index];
        tally.start(axis, walk.channels);
        const int64_t begin = part * units_per_part;
        const int64_t end = std::min(begin + units_per_part, units);
        tally.count += (end - begin) * unit;
        Part piece(walk, tally.low, tally.high, tally.sums, tally.counter, loan.slot().channel_sums, stride);
        if (!piece.run(data, begin, end)) finite = false;
    };
    if (parts == 1 || omp_in_parallel() != 0 || omp_get_max_threads() == 1) {
        for (int64_t part = 0; part < parts && finite; ++part) work(part);
    } else {
#pragma omp parallel for schedule(dynamic, 1)
        for (int64_t part = 0; part < parts; ++part) work(part);
    }
    if (finite) return;
    check_not_finite(observation);
    const std::lock_guard lock(mutex_);
    known_[index].infinite = true;
}

Stats Collector::stats() const {
    Stats stats;
    for (const auto& slot : slots_) {
        for (size_t i = 0; i < slot->tallies.size(); ++i) {
            const Tally& tally = slot->tallies[i];
            if (tally.count == 0 || known_[i].infinite) continue;
            ValueStats seen;
            seen.count = tally.count;
            // Adding zero makes -0 and 0 one.
            seen.min = *std::ranges::min_element(tally.low) + 0.0F;
            seen.max = *std::ranges::max_element(tally.high) + 0.0F;
            seen.channel_axis = tally.channel_axis;
            if (seen.channel_axis >= 0) {
                for (const float low : tally.low) seen.channel_min.push_back(low + 0.0F);
                for (const float high : tally.high) seen.channel_max.push_back(high + 0.0F);
            }
            seen.sums = tally.sums;
            seen.histogram = tally.counter.histogram();
            stats.values[known_[i].name].merge(seen);
        }
    }
    return stats;
}

}  // namespace kilter
