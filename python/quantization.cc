// quantize, calibrate and compare for Python. Samples are pulled from an iterator one at a time; the GIL is held only then.
#include <algorithm>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "kilter/base/error.h"
#include "kilter/calibration/calibrate.h"
#include "kilter/calibration/entropy.h"
#include "kilter/deploy/mxnet.h"
#include "kilter/engine/compare.h"
#include "kilter/formats/onnx.h"
#include "quantized.h"

namespace kilter::python {
namespace {

using namespace nb::literals;

// `next` returns a list of inputs as Session.run takes them, or None at the end.
SampleSource source_of(const nb::callable& next) {
    return [&next]() -> std::optional<std::vector<Tensor>> {
        const nb::gil_scoped_acquire gil;
        const nb::object inputs = next();
        if (inputs.is_none()) return std::nullopt;
        return to_own_tensors(nb::cast<nb::list>(inputs));
    };
}

int threads_of(int threads, int instances) {
    return threads > 0 ? threads : std::max(1, available_cores() / std::max(instances, 1));
}

Stats calibrate_prepared(const Model& prepared, const nb::callable& next, int threads, int instances) {
    // The names of the prepared graph are what the statistics are about: it runs as it stands.
    const Program program(clone(prepared), {.threads = threads_of(threads, instances), .optimize = false});
    return calibrate(program, source_of(next), {.instances = instances});
}

QuantizeOptions to_options(const nb::dict& words) {
    QuantizeOptions options;
    apply_words(words, options);
    return options;
}

QuantizedSession* quantize_session(const Session& session, const std::optional<nb::callable>& first,
                                   const std::optional<nb::callable>& second, const Stats* stats,
                                   const nb::dict& words, int threads, int instances) {
    const QuantizeOptions options = to_options(words);
    int pass = 0;
    const auto calibrate_pass = [&](const Model& prepared) {
        ++pass;
        if (pass == 1 && stats != nullptr) return *stats;
        const std::optional<nb::callable>& next = pass == 1 || stats != nullptr ? first : second;
        if (!next)
            throw Error("this recipe calibrates twice, but the samples can be read only once",
                        "give calibration as a list or another object that can be iterated again");
        return calibrate_prepared(prepared, *next, threads, instances);
    };
    const nb::gil_scoped_release unlocked;
    return new QuantizedSession(quantize(clone(session.model()), calibrate_pass, options), threads);
}

Stats calibrate_session(const Session& session, const nb::callable& next, const nb::dict& words, int threads,
                        int instances) {
    const QuantizeOptions options = to_options(words);
    const nb::gil_scoped_release unlocked;
    Model model = clone(session.model());
    prepare(model, options);
    return calibrate_prepared(model, next, threads, instances);
}

nb::list report_of(const QuantizeReport& report) {
    nb::list entries;
    for (const OperatorReport& entry : report.operators)
        entries.append(
            nb::make_tuple(entry.name, entry.op, std::string(name(entry.precision)), entry.reason));
    return entries;
}

nb::list ranges_of(const QuantizeReport& report) {
    nb::list entries;
    for (const ValueReport& entry : report.values)
        entries.append(nb::make_tuple(entry.value, std::string(name(entry.params.dtype)), entry.range.min,
                                      entry.range.max, entry.params.scales[0], entry.params.zero_points[0]));
    return entries;
}

nb::list to_list(const std::vector<Drift>& drifts) {
    nb::list list;
    for (const Drift& drift : drifts)
        list.append(nb::make_tuple(drift.name, drift.op, drift.snr_db, drift.max_error, drift.max_signal));
    return list;
}

nb::tuple compare_sessions(const Session& a, const Session& b, const nb::callable& next) {
    Comparison comparison(a.program(), b.program());
    {
        const nb::gil_scoped_release unlocked;
        const SampleSource source = source_of(next);
        while (const auto inputs = source()) comparison.add(*inputs);
    }
    return nb::make_tuple(to_list(comparison.outputs()), to_list(comparison.operators()));
}

nb::dict summary_of(const ValueStats& stats) {
    nb::dict entry;
    entry["count"] = stats.count;
    entry["min"] = stats.min;
    entry["max"] = stats.max;
    entry["mean"] = stats.mean;
    return entry;
}

// As if the value had reached from `low` to `high`: the range that minmax takes then.
void assume(Stats& stats, const std::string& value, float low, float high) {
    const auto found = stats.values.find(value);
    if (found == stats.values.end()) throw Error("there are no statistics of '" + value + "'");
    ValueStats& entry = found->second;
    entry.min = low;
    entry.max = high;
    for (float& least : entry.channel_min) least = std::clamp(least, low, high);
    for (float& most : entry.channel_max) most = std::clamp(most, low, high);
}

void bind_stats(nb::module_& module) {
    nb::class_<Stats>(module, "Stats")
        .def_static(
            "load",
            [](const std::string& path) {
                const nb::gil_scoped_release unlocked;
                return Stats::load(path);
            },
            "path"_a)
        .def(
            "save",
            [](const Stats& stats, const std::string& path) {
                const nb::gil_scoped_release unlocked;
                stats.save(path);
            },
            "path"_a)
        .def("merge", &Stats::merge, "other"_a)
        .def("assume", &assume, "value"_a, "low"_a, "high"_a)
        .def_ro("samples", &Stats::samples)
        .def(
            "equal", [](const Stats& a, const Stats& b) { return a == b; }, "other"_a)
        .def_prop_ro("values", [](const Stats& stats) {
            nb::dict values;
            for (const auto& [name, entry] : stats.values) values[name.c_str()] = summary_of(entry);
            return values;
        });
}

}  // namespace

void apply_words(const nb::dict& words, QuantizeOptions& options) {
    const auto given = [&](const char* key) { return words.contains(key) && !words[key].is_none(); };
    const auto text = [&](const char* key) { return nb::cast<std::string>(words[key]); };
    const auto list = [&](const char* key) {
        return given(key) ? nb::cast<std::vector<std::string>>(words[key]) : std::vector<std::string>();
    };
    if (given("mode")) options.mode = mode(text("mode"));
    if (given("target")) options.target = target(text("target"));
    Choice choice;
    if (given("algorithm") && text("algorithm") != "auto")
        choice.algorithm = range_algorithm(text("algorithm"));
    if (given("weights")) choice.granularity = granularity(text("weights"));
    if (given("scheme")) choice.scheme = scheme(text("scheme"));
    if (given("percentile")) choice.percentile = nb::cast<double>(words["percentile"]);
    if (choice.algorithm || choice.granularity || choice.scheme || choice.percentile)
        options.overrides.push_back({Override::Of::model, "", choice});
    if (given("overrides"))
        for (Override& rule : parse_overrides(text("overrides")))
            options.overrides.push_back(std::move(rule));
    for (std::string& pattern : list("exclude")) options.exclude.push_back(std::move(pattern));
    if (given("only")) options.only = list("only");
    for (const std::string& recipe : list("recipes")) enable(options.recipes, recipe);
    if (given("smooth_alpha")) options.recipes.smooth_alpha = nb::cast<double>(words["smooth_alpha"]);
    if (given("plan")) options.plan = Plan::from_json(text("plan"));
}

void bind_quantization(nb::module_& module) {
    bind_stats(module);
    nb::class_<QuantizedSession, Session>(module, "QuantizedSession")
        .def_prop_ro("plan", [](const QuantizedSession& session) { return session.quantized().plan.json(); })
        .def_prop_ro("report",
                     [](const QuantizedSession& session) { return report_of(session.quantized().report); })
        .def_prop_ro("ranges",
                     [](const QuantizedSession& session) { return ranges_of(session.quantized().report); })
        .def_prop_ro("notes",
                     [](const QuantizedSession& session) { return session.quantized().report.notes; })
        .def_prop_ro("bytes",
                     [](const QuantizedSession& session) {
                         const QuantizeReport& report = session.quantized().report;
                         return nb::make_tuple(report.bytes_before, report.bytes_after);
                     })
        .def(
            "save_quantized",
            [](const QuantizedSession& session, const std::string& path) {
                const nb::gil_scoped_release unlocked;
                save(session.quantized(), path);
            },
            "path"_a)
        .def(
            "export_mxnet",
            [](const QuantizedSession& session, const std::string& source, const std::string& prefix) {
                std::vector<mxnet::ExportedOperator> operators;
                {
                    const nb::gil_scoped_release unlocked;
                    operators = mxnet::export_model(session.quantized(), source, prefix);
                }
                nb::list entries;
                for (const auto& entry : operators)
                    entries.append(nb::make_tuple(entry.name, entry.op, entry.fused, entry.note));
                return entries;
            },
            "source"_a, "prefix"_a);
    module.def("quantize", &quantize_session, "session"_a, "first"_a.none(), "second"_a.none(),
               "stats"_a.none(), "options"_a, "threads"_a, "instances"_a);
    module.def("calibrate", &calibrate_session, "session"_a, "next"_a, "options"_a, "threads"_a,
               "instances"_a);
    module.def("compare", &compare_sessions, "a"_a, "b"_a, "next"_a);
    module.def("capability_table", &capability_table);
    module.def("entropy_threshold", &entropy_threshold, "bins"_a, "width"_a, "never_negative"_a);
}

}  // namespace kilter::python
