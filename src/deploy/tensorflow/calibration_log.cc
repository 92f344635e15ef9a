#include "deploy/tensorflow/calibration_log.h"

#include <algorithm>
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

BatchRanges batch_ranges(std::string_view name) {
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (lower == "direct") return BatchRanges::direct;
    if (lower == "ma") return BatchRanges::ma;
    if (lower == "minmax") return BatchRanges::minmax;
    throw Error(fmt::format("there is no algorithm '{}' for the ranges of batches", name),
                "it is one of DIRECT, MA and MINMAX");
}

void insert_prints(TfGraph& graph, const std::vector<std::string>& tensors) {
    const std::string all = graph.fresh_name("kilter_log/all");
    const std::string axis = graph.fresh_name("kilter_log/axis");
    graph.add_constant(all, Tensor::of<int32_t>({1}, {-1}));
    graph.add_constant(axis, Tensor::of<int32_t>({1}, {0}));
    auto readers = graph.uses();
    for (size_t i = 0; i < tensors.size(); ++i) {
        const TfInput tensor(tensors[i]);
        const std::string stem = graph.fresh_name(fmt::format("kilter_log/tensor_{}", i));
        TfNode& flat = graph.add(stem + "/flat", "Reshape", {tensor, TfInput::of(all)});
        flat.attributes.set("T", kFloat);
        flat.attributes.set("Tshape", kInt32);
        for (const char* op : {"Min", "Max"}) {
            TfNode& extreme = graph.add(stem + "/" + op, op, {TfInput::of(flat.name), TfInput::of(axis)});
            extreme.attributes.set("T", kFloat);
            extreme.attributes.set("Tidx", kInt32);
            extreme.attributes.set("keep_dims", false);
        }
        // Readers wait for the Print, they do not read through it: TensorFlow's optimizer moves what lies on the way of data.
        const std::string print = stem + "/print";
        TfInput after = TfInput::of(print);
        after.control = true;
        for (const TfGraph::Use& use : readers[tensor.node])
            if (use.node->inputs[use.index].text() == tensor.text()) use.node->inputs.push_back(after);
        TfNode& node =
            graph.add(print, "Print",
                      {TfInput::of(stem + "/Min"), TfInput::of(stem + "/Min"), TfInput::of(stem + "/Max")});
        TfList types;
        types.types = {kFloat, kFloat};
        node.attributes.set("T", kFloat);
        node.attributes.set("U", std::move(types));
        node.attributes.set("message", fmt::format(";{}{}requant_min_max:", tensors[i], kMark).c_str());
        node.attributes.set("first_n", int64_t{-1});
        node.attributes.set("summarize", int64_t{3});
    }
}

void parse_log(std::string_view text, BatchLog& log) {
    std::map<std::string, std::vector<double>> lows;
    std::map<std::string, std::vector<double>> highs;
    for (size_t mark = text.find(kMark); mark != std::string_view::npos; mark = text.find(kMark, mark + 1)) {
        const size_t line = text.rfind('\n', mark) + 1;  // npos + 1 is the start of the text
        const size_t start = text.rfind(';', mark);
        if (start == std::string_view::npos || start < line) continue;
        const std::string name(text.substr(start + 1, mark - start - 1));
        std::string_view rest = text.substr(mark + kMark.size());
        const size_t colon = rest.find(':');
        if (colon == std::string_view::npos) continue;
        const std::string_view what = rest.substr(0, colon);
        rest.remove_prefix(colon + 1);
        const std::optional<double> first = bracketed(rest);
        if (!first) continue;
        if (what == "requant_min_max") {
            if (const std::optional<double> second = bracketed(rest)) log[name].push_back({*first, *second});
        } else if (what == "min") {
            lows[name].push_back(*first);
        } else if (what == "max") {
            highs[name].push_back(*first);
        }
    }
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
        if (found == log.end())
            missing.push_back(tensor);
        else
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
