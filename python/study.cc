#include "study.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "report/study.h"
#include "settings.h"

namespace kilter::python {

nb::dict to_dict(const StudyResult& result) {
    nb::dict entry;
    nb::list trials, spared;
    for (size_t i = 0; i < result.trials.size(); ++i)
        trials.append(python::to_dict(result.trials[i], result.summaries[i]));
    for (const Spared& one : result.spared)
        spared.append(nb::make_tuple(one.name, one.op, std::string(name(one.precision)), one.reason));
    entry["met"] = result.met;
    entry["baseline"] = python::to_dict(result.baseline);
    entry["best"] = result.best.number;
    entry["trials"] = trials;
    entry["spared"] = spared;
    entry["pareto"] = result.pareto;
    entry["ended"] = result.ended;
    entry["seconds"] = result.seconds;
    entry["full_evaluations"] = result.full_evaluations;
    entry["workspace"] = result.workspace.string();
    entry["text"] = result_text(result);
    return entry;
}

void apply_search_words(const nb::dict& words, TuneOptions& options) {
    const auto set = [&]<class T>(const char* key, T& value) {
        if (words.contains(key) && !words[key].is_none()) value = nb::cast<T>(words[key]);
    };
    std::string max_loss, objective, workspace;
    set("max_loss", max_loss);
    set("objective", objective);
    set("workspace", workspace);
    if (!max_loss.empty()) {
        const Criterion said = Criterion::parse(max_loss);
        options.criterion.relative = said.relative;
        options.criterion.loss = said.loss;
    }
    if (!objective.empty()) options.objective = Objective::parse(objective);
    if (!workspace.empty()) options.workspace = workspace;
    set("strategy", options.strategy);
    if (words.contains("strategy_options") && !words["strategy_options"].is_none())
        options.strategy_settings = to_settings(words["strategy_options"], "strategy_options");
    double timeout = -1;
    set("timeout", timeout);
    if (timeout >= 0) options.exit.timeout = timeout;
    set("max_trials", options.exit.max_trials);
    set("performance_only", options.exit.performance_only);
    set("seed", options.seed);
    set("samples", options.samples);
    set("scoring_samples", options.scoring_samples);
    set("early_rejection", options.early_rejection);
    set("resume", options.resume);
    set("threads", options.threads);
}

void listen(TuneOptions& options, Watch& watch, const std::optional<nb::callable>& told, Outcome& fp32) {
    options.progress.working = std::ref(watch);
    options.progress.baseline = [&watch, &told, &fp32](const Outcome& baseline) {
        fp32 = baseline;
        watch.expect(baseline.samples);
        const nb::gil_scoped_acquire gil;
        if (told) (*told)(to_dict(baseline), baseline_text(baseline));
    };
    if (!told) return;
    options.progress.trial = [&told, &fp32](const Trial& trial, const Space& space, const Trial* best) {
        const std::string summary = space.summary(trial.candidate);
        const nb::gil_scoped_acquire gil;
        (*told)(to_dict(trial, summary), trial_text(trial, summary, fp32, best));
    };
}

}  // namespace kilter::python
