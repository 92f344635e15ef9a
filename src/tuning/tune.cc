#include "kilter/tuning/tune.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "kilter/formats/load.h"
#include "kilter/tuning/strategy.h"
#include "tuning/identity.h"
#include "tuning/model_backend.h"
#include "tuning/study.h"

namespace kilter {
namespace {

// The part of a TensorFlow graph that was chosen, for who reads the file again.
std::vector<std::string> input_names(const Model& model) {
    std::vector<std::string> names;
    for (const Value* value : model.graph.inputs()) names.push_back(value->name());
    return names;
}

std::vector<std::string> output_names(const Model& model) {
    std::vector<std::string> names;
    for (const Graph::Output& output : model.graph.outputs()) names.push_back(output.name);
    return names;
}

// Sizes of the inputs, -1 for open ones: MXNet's files do not tell them. Inputs of any rank are left out.
Record input_shapes(const Model& model) {
    Record shapes = Record::object();
    for (const Value* value : model.graph.inputs()) {
        if (!value->type.shape) continue;
        Shape sizes;
        for (const Dim& dim : *value->type.shape) sizes.push_back(dim.known() ? dim.value : -1);
        shapes[value->name()] = sizes;
    }
    return shapes;
}

std::string signature(const Model& model) {
    const auto found =
        std::ranges::find(model.metadata, kSignatureKey, &std::pair<std::string, std::string>::first);
    return found == model.metadata.end() ? "" : found->second;
}

Model load_again(const std::string& source, const Record& study) {
    const ModelFormat format = format_of(source);
    LoadOptions options;
    if (format == ModelFormat::mxnet && study.contains("shapes"))
        for (const auto& [name, sizes] : study.at("shapes").items())
            options.shapes.emplace_back(name, sizes.get<Shape>());
    if ((format == ModelFormat::graph_def || format == ModelFormat::saved_model) &&
        study.contains("inputs")) {
        options.inputs = study.at("inputs").get<std::vector<std::string>>();
        options.outputs = study.at("outputs").get<std::vector<std::string>>();
        options.signature = study.value("signature", std::string());
    }
    return load_model(source, options);
}

Record study_record(const Model& model, ModelBackend& backend, Evaluation& evaluation,
                    const TuneOptions& options) {
    return {
        {"type", "study"},
        {"version", 1},
        {"model", hex(fingerprint(model))},
        {"calibration", hex(backend.calibration_fingerprint())},
        {"evaluation", hex(evaluation.fingerprint())},
        {"settings", settings_record(options, evaluation.metrics())},
        {"source", std::filesystem::exists(model.source) ? std::filesystem::absolute(model.source).string()
                                                         : std::string()},
        {"inputs", input_names(model)},
        {"outputs", output_names(model)},
        {"shapes", input_shapes(model)},
        {"signature", signature(model)}};
}

std::vector<Spared> spared_operators(const QuantizedModel& model, const Search& search,
                                     const Candidate& candidate) {
    const Space& space = search.space();
    std::vector<Spared> spared;
    for (const OperatorReport& entry : model.report.operators) {
        if (entry.precision == Precision::int8 || find_capability(entry.op) == nullptr) continue;
        std::string reason = entry.reason;
        for (size_t i = 0; i < space.operators.size(); ++i)
            if (space.operators[i].name == entry.name && !space.is_quantized(candidate, i) &&
                space.operators[i].options[0].precision == Precision::int8)
                reason = why_spared(search, i);
        spared.push_back({entry.name, entry.op, entry.precision, std::move(reason)});
    }
    return spared;
}

}  // namespace

std::filesystem::path journal_path(const std::filesystem::path& workspace) {
    return workspace / "study.journal";
}

std::filesystem::path stats_path(const std::filesystem::path& workspace, const Variant& variant,
                                 bool before_smoothing) {
    std::string name = "stats";
    if (variant.recipes.equalization) name += "-equalized";
    if (variant.recipes.smooth_quant) name += before_smoothing ? "-unsmoothed" : "-smoothed";
    return workspace / fmt::format("{}-{}.kstats", name, variant.samples);
}

std::filesystem::path best_path(const std::filesystem::path& workspace) { return workspace / "best.onnx"; }

TuneResult tune(const Model& model, const std::function<BatchSource()>& calibration, Evaluation& evaluation,
                TuneOptions options) {
    options.criterion.higher_is_better = evaluation.higher_is_better();
    const std::unique_ptr<Strategy> strategy = make_strategy(options.strategy, options.strategy_settings);
    require(options.exit.max_trials > 0, "{} trials; expected at least one", options.exit.max_trials);
    ModelBackend backend(model, calibration, &evaluation, options);
    const std::unique_ptr<Journal> journal = open_study(
        options, options.workspace.empty() ? Record() : study_record(model, backend, evaluation, options));
    TuneResult result;
    static_cast<StudyResult&>(result) =
        run_study(backend, journal.get(), *strategy, options, [&](const Search& search, StudyResult& found) {
            result.model = backend.quantized(found.best.candidate);
            found.spared = spared_operators(result.model, search, found.best.candidate);
            if (options.resume) backend.keep(found.best);  // whoever was killed may not have come that far
        });
    return result;
}

QuantizedModel recover(const std::filesystem::path& workspace, int number, const Model* given) {
    const std::vector<std::string> texts = Journal::read(journal_path(workspace));
    require(!texts.empty(), "{}: the study has no records", workspace.string());
    const Record study = parse_record(texts.front());
    std::optional<Record> wanted;
    int trials = 0;
    // As Search ranks them: what keeps the promise, then what costs less, then what is more accurate.
    using Rank = std::tuple<bool, double, double>;
    std::optional<Rank> least;
    for (const std::string& text : texts) {
        const Record record = parse_record(text);
        if (record["type"] != "trial") continue;
        trials = std::max(trials, record.at("number").get<int>());
        if (number > 0 && record["number"] == number) wanted = record;
        if (number > 0) continue;
        const bool met = record.at("met").get<bool>();
        const double excess = number_from(record.at("excess"));
        const bool partial = record.at("outcome").at("rejected_early").get<bool>();
        const Rank rank = met ? Rank(false, number_from(record.at("objective")), excess)
                              : Rank(true, partial ? 1 : 0, excess);
        if (!least || rank < *least) {
            least = rank;
            wanted = record;
        }
    }
    if (!wanted)
        throw Error(
            trials > 0
                ? fmt::format("{}: there is no trial {}; there are {}", workspace.string(), number, trials)
                : fmt::format("{}: the study ended before its first trial", workspace.string()),
            trials > 0 ? "" : "kilter tune --resume goes on with it");

    if (study.contains("host"))
        throw Error(
            fmt::format("{}: {} runs the model of this study, kilter cannot build it again",
                        workspace.string(), study["host"].get<std::string>()),
            "the best graph is best.pb in this folder; tuning with resume builds it from the journal");
    const std::string source = study.at("source").get<std::string>();
    require(given != nullptr || !source.empty(), "{}: the study does not know the file of its model",
            workspace.string());
    const Model model = given != nullptr ? clone(*given) : load_again(source, study);
    require(hex(fingerprint(model)) == study.at("model").get<std::string>(),
            "{}: the model changed since the study was made", model.source.empty() ? "model" : model.source);

    Variant variant;
    variant.name = (*wanted)["variant"].at("name").get<std::string>();
    variant.samples = (*wanted)["variant"].at("samples").get<int64_t>();
    variant.recipes = recipes_from((*wanted)["variant"].at("recipes"));
    QuantizeOptions options;
    options.mode = mode(study.at("settings").at("mode").get<std::string>());
    options.target = target(study.at("settings").at("target").get<std::string>());
    PreparedModel prepared = prepare_variant(model, options, variant, workspace, [&](const Model&) -> Stats {
        fail("{}: the statistics of the calibration are missing",
             stats_path(workspace, variant, false).string());
    });
    options.recipes = variant.recipes;
    options.recipes.smooth_quant = false;
    options.plan = adapted_plan(prepared.model.graph, Plan::from_json((*wanted).at("plan").dump()));
    return quantize(std::move(prepared.model), prepared.stats, options);
}

std::vector<Sensitivity> sensitivity(const Model& model, const std::function<BatchSource()>& calibration,
                                     TuneOptions options) {
    options.workspace.clear();
    ModelBackend backend(model, calibration, nullptr, options);
    const Candidate base = backend.space().first();
    const double whole = backend.output_error(base);
    const std::vector<double> scores = backend.scores(Scoring::restored, base);
    const std::vector<double> gains = backend.gains();
    std::vector<Sensitivity> rows;
    for (const size_t index : backend.space().quantized(base)) {
        const SpaceOperator& entry = backend.space().operators[index];
        if (entry.role != Role::must && entry.role != Role::eligible) continue;
        rows.push_back(
            {entry.name, entry.op, scores[index], whole > 0 ? scores[index] / whole : 0, gains[index]});
    }
    std::ranges::stable_sort(rows, std::greater<>(), &Sensitivity::error);
    return rows;
}

}  // namespace kilter
