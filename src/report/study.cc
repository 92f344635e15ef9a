#include "report/study.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "report/text.h"

namespace kilter {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::string figures(const Accuracy& accuracy) {
    std::string text;
    for (const double value : accuracy) text += fmt::format("{}{:.4f}", text.empty() ? "" : ", ", value);
    return text;
}

std::string milliseconds(const Cost& cost) {
    if (cost.milliseconds <= 0) return "-";
    return fmt::format("{:.{}f} ms", cost.milliseconds, cost.milliseconds < 1 ? 3 : 2);
}

std::string factor(double before, double after) {
    return before > 0 && after > 0 ? fmt::format("{:.2f}x", before / after) : "-";
}

std::string loss(const Accuracy& accuracy, const Accuracy& baseline) {
    std::string text;
    for (size_t i = 0; i < accuracy.size(); ++i)
        text +=
            fmt::format("{}{:+.2f} %", text.empty() ? "" : ", ",
                        baseline[i] != 0 ? 100 * (accuracy[i] - baseline[i]) / std::abs(baseline[i]) : 0.0);
    return text;
}

Json to_json(const Outcome& outcome) {
    return {{"accuracy", outcome.accuracy},
            {"samples", outcome.samples},
            {"rejected_early", outcome.rejected_early},
            {"milliseconds", outcome.cost.milliseconds},
            {"bytes", outcome.cost.bytes},
            {"memory", outcome.cost.memory},
            {"seconds", outcome.seconds}};
}

Json to_json(const Trial& trial, const std::string& summary) {
    Json json{{"number", trial.number}, {"reason", trial.reason},       {"operators", summary},
              {"met", trial.met},       {"objective", trial.objective}, {"outcome", to_json(trial.outcome)}};
    return json;
}

// Many operators of one kind and fate would fill pages: the first few names say enough.
Rows spared_rows(const std::vector<Spared>& spared) {
    constexpr size_t kNames = 4;
    std::vector<std::pair<std::array<std::string, 3>, std::vector<std::string>>> groups;
    for (const Spared& entry : spared) {
        const std::array<std::string, 3> key{entry.op, std::string(name(entry.precision)), entry.reason};
        auto found = std::ranges::find(groups, key, [](const auto& group) { return group.first; });
        if (found == groups.end()) found = groups.insert(groups.end(), {key, {}});
        found->second.push_back(entry.name);
    }
    Rows rows;
    for (auto& [key, names] : groups) {
        const size_t count = names.size();
        if (count > kNames) names.resize(kNames);
        rows.push_back({fmt::format("{}", count), key[0], key[1], key[2],
                        fmt::format("{}{}", fmt::join(names, ", "), count > kNames ? ", …" : "")});
    }
    return rows;
}

}  // namespace

std::string baseline_text(const Outcome& baseline) {
    return fmt::format("FP32    accuracy {}, {}, {}{}\n", figures(baseline.accuracy),
                       milliseconds(baseline.cost), short_bytes(baseline.cost.bytes),
                       baseline.samples > 0
                           ? fmt::format(", {} samples in {:.1f} s", baseline.samples, baseline.seconds)
                           : "");
}

std::string trial_text(const Trial& trial, const std::string& summary, const Outcome& baseline,
                       const Trial* best) {
    const Outcome& outcome = trial.outcome;
    std::string text = fmt::format("tune {:<3}", trial.number);
    if (outcome.rejected_early)
        text += fmt::format("rejected after {} samples at {}", outcome.samples, figures(outcome.accuracy));
    else
        text += fmt::format("accuracy {} ({}), {}{}", figures(outcome.accuracy),
                            loss(outcome.accuracy, baseline.accuracy), milliseconds(outcome.cost),
                            trial.met ? ", keeps the promise" : "");
    text += fmt::format(" | {} | {}", summary, trial.reason);
    if (best == &trial) text += " | best so far";
    return text + "\n";
}

std::string result_text(const StudyResult& result) {
    const Outcome& before = result.baseline;
    const Outcome& after = result.best.outcome;
    Rows rows{{"", "FP32", fmt::format("tune {} (best)", result.best.number), ""}};
    rows.push_back({"accuracy", figures(before.accuracy), figures(after.accuracy),
                    loss(after.accuracy, before.accuracy)});
    rows.push_back({"latency", milliseconds(before.cost), milliseconds(after.cost),
                    factor(before.cost.milliseconds, after.cost.milliseconds)});
    rows.push_back({"size", short_bytes(before.cost.bytes), short_bytes(after.cost.bytes),
                    factor(before.cost.bytes, after.cost.bytes)});
    if (before.cost.memory > 0 && after.cost.memory > 0)
        rows.push_back({"memory", short_bytes(before.cost.memory), short_bytes(after.cost.memory),
                        factor(before.cost.memory, after.cost.memory)});
    std::string text = "Tune Result Statistics\n" + table(rows, {1, 2, 3});
    text += fmt::format(
        "\n{} | {} trials, {} evaluated in full, {:.1f} s: {}\n",
        result.met ? "The promise is kept" : "The promise is NOT kept: this is the most accurate model found",
        result.trials.size(), result.full_evaluations, result.seconds, result.ended);
    text += fmt::format("Best: {} ({})\n", result.summaries[static_cast<size_t>(result.best.number) - 1],
                        result.best.reason);
    if (result.spared.empty()) return text + "No operator was spared.\n";
    return text + "Operators in floating point:\n" + table(spared_rows(result.spared), {0});
}

std::string result_json(const TuneResult& result) {
    Json trials = Json::array(), spared = Json::array();
    for (size_t i = 0; i < result.trials.size(); ++i)
        trials.push_back(to_json(result.trials[i], result.summaries[i]));
    for (const Spared& entry : result.spared)
        spared.push_back({{"name", entry.name},
                          {"op", entry.op},
                          {"precision", name(entry.precision)},
                          {"reason", entry.reason}});
    const Json json{
        {"met", result.met},
        {"baseline", to_json(result.baseline)},
        {"best", to_json(result.best, result.summaries[static_cast<size_t>(result.best.number) - 1])},
        {"plan_hash", fmt::format("{:016x}", result.model.plan.hash())},
        {"ended", result.ended},
        {"seconds", result.seconds},
        {"full_evaluations", result.full_evaluations},
        {"pareto", result.pareto},
        {"spared", spared},
        {"trials", trials},
        {"workspace", result.workspace.string()}};
    return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string sensitivity_text(const std::vector<Sensitivity>& rows) {
    Rows cells{{"operator", "type", "error", "share", "gain"}};
    for (const Sensitivity& row : rows)
        cells.push_back({row.name, row.op, fmt::format("{:.3g}", row.error),
                         fmt::format("{:.1f} %", 100 * row.share), fmt::format("{:.2f} %", 100 * row.gain)});
    return table(cells, {2, 3, 4}, "");
}

std::string sensitivity_json(const std::vector<Sensitivity>& rows) {
    Json json = Json::array();
    for (const Sensitivity& row : rows)
        json.push_back({{"name", row.name},
                        {"op", row.op},
                        {"error", row.error},
                        {"share", row.share},
                        {"gain", row.gain}});
    return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kilter
