#include "kilter/tuning/tune.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "kilter/formats/load.h"
#include "kilter/tuning/strategy.h"
#include "tuning/identity.h"
#include "tuning/journal.h"
#include "tuning/model_backend.h"

namespace kilter {
namespace {

// What killed processes were writing and, in front of a new study, what is left of one whose journal was taken away: statistics
// of other samples would be taken for ours.
void tidy_up(const std::filesystem::path& workspace, bool fresh) {
    for (const auto& entry : std::filesystem::directory_iterator(workspace)) {
        const std::filesystem::path& path = entry.path();
        const bool stale = path.extension() == ".kstats" || path == best_path(workspace);
        if (path.extension() == ".partial" || (fresh && stale)) std::filesystem::remove(path);
    }
}

// Who starts in a folder without `resume` must find no study there.
std::unique_ptr<Journal> open_journal(const TuneOptions& options, const Record& study) {
    if (options.workspace.empty()) return nullptr;
    const std::filesystem::path path = journal_path(options.workspace);
    std::error_code error;
    std::filesystem::create_directories(options.workspace, error);
    require(!error, "{}: cannot make the folder: {}", options.workspace.string(), error.message());
    const bool there = std::filesystem::exists(path);
    if (options.resume && !there)
        throw Error(fmt::format("{}: there is no study to resume", options.workspace.string()),
                    "leave out --resume to start one");
    auto journal =
        std::make_unique<Journal>(path, options.resume ? Journal::Open::resume : Journal::Open::create);
    tidy_up(options.workspace, journal->records().empty());
    if (journal->records().empty())  // also: killed before it was written
        journal->append(line(study));
    else
        check_same_study(parse_record(journal->records().front()), study, options.workspace);
    return journal;
}

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

std::string why(SearchOver over, const ExitPolicy& exit) {
    switch (over.why) {
        case SearchOver::Why::success:
            return "the first model that keeps the promise";
        case SearchOver::Why::trials:
            return fmt::format("all {} trials made", exit.max_trials);
        case SearchOver::Why::timeout:
            return fmt::format("{:g} seconds are over", exit.timeout.value_or(0));
        case SearchOver::Why::performance_only:
            break;
    }
    return "only speed was asked for";
}

// Trials that are not both less accurate and more expensive than another.
std::vector<int> pareto_front(const std::deque<Trial>& trials) {
    std::vector<int> front;
    for (const Trial& trial : trials) {
        if (trial.outcome.rejected_early || !std::isfinite(trial.excess)) continue;
        bool beaten = false;
        for (const Trial& other : trials) {
            if (other.outcome.rejected_early) continue;
            const bool no_worse = other.excess <= trial.excess && other.objective <= trial.objective;
            const bool better = other.excess < trial.excess || other.objective < trial.objective;
            beaten = beaten || (no_worse && better);
        }
        if (!beaten) front.push_back(trial.number);
    }
    return front;
}

// Why a search left operator `index` in floating point, as far as it measured that.
std::string why_spared(const Search& search, size_t index) {
    const std::vector<double>& scores = search.last_scores();
    const std::vector<double>& gains = search.last_gains();
    if (!scores.empty()) {
        double sum = 0;
        for (const double score : scores) sum += std::max(score, 0.0);
        if (sum > 0 && scores[index] > 0)
            return fmt::format("spared: {:.0f} % of the error of the outputs", 100 * scores[index] / sum);
    }
    if (!gains.empty() && gains[index] < 0) return "spared: slower on integers";
    return "the search spared it";
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
    const std::unique_ptr<Journal> journal =
        options.workspace.empty() ? nullptr
                                  : open_journal(options, study_record(model, backend, evaluation, options));

    Search::Options settings;
    settings.criterion = options.criterion;
    settings.objective = options.objective;
    settings.exit = options.exit;
    settings.seed = options.seed;
    settings.ends_by_itself = strategy->ends_by_itself();
    settings.early_rejection = options.early_rejection;
    if (options.progress.working)
        settings.starting = [&](const std::string& what) { options.progress.working(what, 0, 0); };
    settings.measured_baseline = options.progress.baseline;
    if (options.progress.trial)
        settings.finished = [&](const Trial& trial, const Trial* best) {
            options.progress.trial(trial, backend.space(), best);
        };
    Search search(backend, journal.get(), std::move(settings));

    TuneResult result;
    result.ended = "nothing left to try";
    try {
        strategy->run(search);
        if (search.best() != nullptr) result.ended = "the strategy found what it looks for";
    } catch (const SearchOver& over) {
        result.ended = why(over, options.exit);
    }
    const Trial* best = search.best_or_nearest();
    if (best == nullptr)  // the time was over before the first trial
        best = &search.evaluate(backend.space().first(), "all on integers");
    result.met = best->met;
    result.best = *best;
    result.baseline = search.baseline();
    result.model = backend.quantized(best->candidate);
    result.trials.assign(search.trials().begin(), search.trials().end());
    for (const Trial& trial : result.trials) {
        result.summaries.push_back(backend.space().summary(trial.candidate));
        result.full_evaluations += trial.outcome.rejected_early ? 0 : 1;
    }
    result.pareto = pareto_front(search.trials());
    result.spared = spared_operators(result.model, search, best->candidate);
    result.seconds = search.elapsed();
    result.workspace = options.workspace;
    if (options.resume) backend.keep(*best);  // whoever was killed may not have come that far
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
