#include "deploy/tensorflow/calibration_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/fail.h"

namespace kilter::tensorflow {
namespace {

constexpr std::string_view kMark = "__print__;__";

// "[1.5]" at the start of `text`, which is cut off; nothing when it is no number.
std::optional<double> bracketed(std::string_view& text) {
    if (!text.starts_with('[')) return std::nullopt;
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string digits(text.substr(1, end - 1));
    text.remove_prefix(end + 1);
    char* rest = nullptr;
    const double value = std::strtod(digits.c_str(), &rest);  // knows "inf" and "nan"
    if (digits.empty() || rest != digits.c_str() + digits.size()) return std::nullopt;
    return value;
}

// "[1 2 3]" at the start of `text`, which is cut off; nothing when these are no counts.
std::vector<int64_t> bracketed_counts(std::string_view& text) {
    std::vector<int64_t> counts;
    const size_t end = text.find(']');
    if (!text.starts_with('[') || end == std::string_view::npos) return counts;
    const char* at = text.data() + 1;
    const char* last = text.data() + end;
    while (at < last) {
        int64_t count = 0;
        const auto [next, problem] = std::from_chars(at, last, count);
        if (problem != std::errc() || count < 0) return {};
        counts.push_back(count);
        at = next;
        while (at < last && *at == ' ') ++at;
    }
    text.remove_prefix(end + 1);
    return counts;
}

// Calls visit(tensor, what, the rest of the text) for everything that a Print of ours says.
template <class Visit>
void for_each_entry(std::string_view text, const Visit& visit) {
    for (size_t mark = text.find(kMark); mark != std::string_view::npos; mark = text.find(kMark, mark + 1)) {
        const size_t line = text.rfind('\n', mark) + 1;  // npos + 1 is the start of the text
        const size_t start = text.rfind(';', mark);
        if (start == std::string_view::npos || start < line) continue;
        const std::string name(text.substr(start + 1, mark - start - 1));
        const std::string_view rest = text.substr(mark + kMark.size());
        const size_t colon = rest.find(':');
        if (colon != std::string_view::npos) visit(name, rest.substr(0, colon), rest.substr(colon + 1));
    }
}

// The bins of Histogram that hold all values between two extremes.
class Bins {
  public:
    Bins(const std::string& tensor, const Interval& range) : negative_(range.min < 0) {
        require(std::isfinite(range.min) && std::isfinite(range.max), "the range of tensor '{}' is [{}, {}]",
                tensor, range.min, range.max);
        exponent_ =
            Histogram::exponent_for(static_cast<float>(std::max(std::fabs(range.min), std::fabs(range.max))));
    }

    int count() const { return (negative_ ? 2 : 1) * Histogram::kBins; }
    float last() const { return std::ldexp(static_cast<float>(Histogram::kBins), exponent_); }
    float first() const { return negative_ ? -last() : 0.0F; }

    Histogram histogram(int64_t zeros, const std::vector<int64_t>& counts) const {
        const auto middle = counts.end() - Histogram::kBins;
        std::vector<int64_t> positive(middle, counts.end());
        positive[0] = std::max<int64_t>(positive[0] - zeros, 0);
        return Histogram::from_parts(exponent_, zeros,
                                     {std::reverse_iterator(middle), std::reverse_iterator(counts.begin())},
                                     std::move(positive));
    }

  private:
    bool negative_;
    int exponent_ = 0;
};

// Nodes that look at tensors of a graph while it runs.
class Logging {
  public:
    explicit Logging(TfGraph& graph) : graph_(graph), readers_(graph.uses()) {
        all_ = constant("kilter_log/all", Tensor::of<int32_t>({1}, {-1}));
    }

    TfInput constant(const std::string& stem, Tensor value) {
        return TfInput::of(graph_.add_constant(graph_.fresh_name(stem), std::move(value)).name);
    }
    TfInput first_axis() { return constant("kilter_log/axis", Tensor::of<int32_t>({1}, {0})); }

    // STEM/flat has the elements of the tensor; returns the stem.
    std::string watch(const std::string& tensor) {
        std::string stem = graph_.fresh_name(fmt::format("kilter_log/tensor_{}", watched_++));
        TfNode& flat = graph_.add(stem + "/flat", "Reshape", {TfInput(tensor), all_});
        flat.attributes.set("T", kFloat);
        flat.attributes.set("Tshape", kInt32);
        return stem;
    }

    void reduce(const char* op, const std::string& name, const TfInput& input, const TfInput& axis,
                TfType type) {
        TfNode& node = graph_.add(name, op, {input, axis});
        node.attributes.set("T", type);
        node.attributes.set("Tidx", kInt32);
        node.attributes.set("keep_dims", false);
    }

    // Two tensors after a text. Readers of what is watched wait for the Print, they do not read through it: TensorFlow's optimizer moves
    // what lies on the way of data.
    void print(const std::string& tensor, const std::string& stem, const char* what,
               const std::array<TfInput, 2>& values, TfType type, int64_t most) {
        const TfInput watched(tensor);
        TfInput after = TfInput::of(stem + "/print");
        after.control = true;
        for (const TfGraph::Use& use : readers_[watched.node])
            if (use.node->inputs[use.index].text() == watched.text()) use.node->inputs.push_back(after);
        TfNode& node = graph_.add(stem + "/print", "Print", {values[0], values[0], values[1]});
        TfList types;
        types.types = {type, type};
        node.attributes.set("T", type);
        node.attributes.set("U", std::move(types));
        node.attributes.set("message", fmt::format(";{}{}{}:", tensor, kMark, what).c_str());
        node.attributes.set("first_n", int64_t{-1});
        node.attributes.set("summarize", most);
    }

  private:
    TfGraph& graph_;
    std::unordered_map<std::string, std::vector<TfGraph::Use>> readers_;
    TfInput all_;
    int watched_ = 0;
};

// The element of a sorted list below which `part` of it lies.
double order_statistic(std::vector<double> values, double part) {
    std::ranges::sort(values);
    const double last = static_cast<double>(values.size()) - 1;
    return values[static_cast<size_t>(std::nearbyint(std::clamp(part * last, 0.0, last)))];
}

Interval combine_batches(const std::vector<Interval>& batches, BatchRanges how) {
    if (how == BatchRanges::ma) {
        Interval moving = batches.front();
        for (const Interval& batch : batches)
            moving = {0.5 * (moving.min + batch.min), 0.5 * (moving.max + batch.max)};
        return moving;
    }
    std::vector<double> low;
    std::vector<double> high;
    for (const Interval& batch : batches) {
        low.push_back(batch.min);
        high.push_back(batch.max);
    }
    // With fewer than twenty batches a twentieth of them is none.
    const double cut = how == BatchRanges::direct && batches.size() >= 20 ? 0.05 : 0.0;
    return {order_statistic(std::move(low), cut), order_statistic(std::move(high), 1.0 - cut)};
}

}  // namespace

RangeRule range_rule(std::string_view name) {
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (lower == "direct") return BatchRanges::direct;
    if (lower == "ma") return BatchRanges::ma;
    if (lower == "minmax") return BatchRanges::minmax;
    if (lower == "kl") return RangeOptions{.algorithm = RangeAlgorithm::kl};
    if (lower == "mse") return RangeOptions{.algorithm = RangeAlgorithm::mse};
    constexpr std::string_view kPercentile = "percentile";
    if (lower == kPercentile) return RangeOptions{.algorithm = RangeAlgorithm::percentile};
    if (lower.starts_with("percentile:")) {
        char* rest = nullptr;
        const double part = std::strtod(lower.c_str() + kPercentile.size() + 1, &rest);
        if (*rest == '\0' && part > 0 && part <= 100)
            return RangeOptions{.algorithm = RangeAlgorithm::percentile, .percentile = part};
    }
    throw Error(fmt::format("there is no algorithm '{}' for ranges", name),
                "it is one of DIRECT, MA, MINMAX, KL, MSE and PERCENTILE[:P]");
}

void insert_prints(TfGraph& graph, const std::vector<std::string>& tensors) {
    Logging logging(graph);
    const TfInput axis = logging.first_axis();
    for (const std::string& tensor : tensors) {
        const std::string stem = logging.watch(tensor);
        for (const char* op : {"Min", "Max"})
            logging.reduce(op, stem + "/" + op, TfInput::of(stem + "/flat"), axis, kFloat);
        logging.print(tensor, stem, "requant_min_max",
                      {TfInput::of(stem + "/Min"), TfInput::of(stem + "/Max")}, kFloat, 3);
    }
}

void insert_counts(TfGraph& graph, const Ranges& extremes) {
    Logging logging(graph);
    const TfInput axis = logging.first_axis();
    const TfInput zero = logging.constant("kilter_log/zero", Tensor::scalar<float>(0.0F));
    for (const auto& [tensor, range] : extremes) {
        const Bins bins(tensor, range);
        const std::string stem = logging.watch(tensor);
        const TfInput flat = TfInput::of(stem + "/flat");
        TfNode& equal = graph.add(stem + "/is_zero", "Equal", {flat, zero});
        equal.attributes.set("T", kFloat);
        equal.attributes.set("incompatible_shape_error", true);
        TfNode& ones = graph.add(stem + "/ones", "Cast", {TfInput::of(equal.name)});
        ones.attributes.set("SrcT", kBool);
        ones.attributes.set("DstT", kInt32);
        ones.attributes.set("Truncate", false);
        logging.reduce("Sum", stem + "/zeros", TfInput::of(ones.name), axis, kInt32);
        const TfInput borders =
            logging.constant(stem + "/borders", Tensor::of<float>({2}, {bins.first(), bins.last()}));
        const TfInput count = logging.constant(stem + "/count", Tensor::scalar<int32_t>(bins.count()));
        TfNode& counts = graph.add(stem + "/counts", "HistogramFixedWidth", {flat, borders, count});
        counts.attributes.set("T", kFloat);
        counts.attributes.set("dtype", kInt32);
        logging.print(tensor, stem, "counts", {TfInput::of(stem + "/zeros"), TfInput::of(counts.name)},
                      kInt32, bins.count());
    }
}

Stats parse_counts(std::string_view text, const Ranges& extremes) {
    Stats stats;
    std::map<std::string, int64_t> batches;
    for_each_entry(text, [&](const std::string& name, std::string_view what, std::string_view rest) {
        const auto known = extremes.find(name);
        if (what != "counts" || known == extremes.end()) return;
        const Bins bins(name, known->second);
        const std::vector<int64_t> zeros = bracketed_counts(rest);
        const std::vector<int64_t> counts = bracketed_counts(rest);
        if (zeros.size() != 1 || counts.size() != static_cast<size_t>(bins.count())) return;
        ValueStats& value = stats.values[name];
        value.min = static_cast<float>(known->second.min);
        value.max = static_cast<float>(known->second.max);
        value.histogram.merge(bins.histogram(zeros[0], counts));
        value.count = value.histogram.count();
        stats.samples = std::max(stats.samples, ++batches[name]);
    });
    return stats;
}

void parse_log(std::string_view text, BatchLog& log) {
    std::map<std::string, std::vector<double>> lows;
    std::map<std::string, std::vector<double>> highs;
    for_each_entry(text, [&](const std::string& name, std::string_view what, std::string_view rest) {
        const std::optional<double> first = bracketed(rest);
        if (!first) return;
        if (what == "requant_min_max") {
            if (const std::optional<double> second = bracketed(rest)) log[name].push_back({*first, *second});
        } else if (what == "min") {
            lows[name].push_back(*first);
        } else if (what == "max") {
            highs[name].push_back(*first);
        }
    });
    for (const auto& [name, minima] : lows) {
        const std::vector<double>& maxima = highs[name];
        for (size_t i = 0; i < std::min(minima.size(), maxima.size()); ++i)
            log[name].push_back({minima[i], maxima[i]});
    }
}

Ranges combine(const BatchLog& log, const std::vector<std::string>& tensors, BatchRanges how) {
    Ranges ranges;
    std::vector<std::string> missing;
    for (const std::string& tensor : tensors) {
        const auto found = log.find(tensor);
        if (found == log.end()) {
            missing.push_back(tensor);
            continue;
        }
        for (const Interval& batch : found->second)
            require(std::isfinite(batch.min) && std::isfinite(batch.max),
                    "tensor '{}' was [{}, {}] in a batch of the calibration", tensor, batch.min, batch.max);
        ranges[tensor] = combine_batches(found->second, how);
    }
    if (!missing.empty())
        throw Error(
            fmt::format("the calibration never saw {} of the {} tensors that are quantized, '{}' for one",
                        missing.size(), tensors.size(), missing.front()),
            "run an inference that computes them all, or exclude the nodes that need them");
    return ranges;
}

}  // namespace kilter::tensorflow
