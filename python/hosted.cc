// Tuning of graphs that TensorFlow runs: it is a Python function that evaluates a GraphDef.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "kilter/deploy/tensorflow_host.h"
#include "kilter/tuning/job.h"
#include "quantized.h"
#include "study.h"

namespace kilter::python {
namespace {

using namespace nb::literals;
using tensorflow::GraphDef;
using tensorflow::GraphHost;
using tensorflow::QuantizableGraph;

// `run` takes the bytes of a GraphDef, or None for FP32, and returns (figures, milliseconds, samples).
GraphHost make_host(const QuantizableGraph& graph, const Stats& stats, const nb::callable& run) {
    return {graph, stats, [function = Callback(run)](const GraphDef* candidate) {
                std::string content;
                if (candidate != nullptr) content = candidate->bytes();
                const nb::gil_scoped_acquire gil;
                const nb::object bytes =
                    candidate == nullptr ? nb::none() : nb::object(nb::bytes(content.data(), content.size()));
                content.clear();
                auto [accuracy, milliseconds, samples] =
                    nb::cast<std::tuple<std::vector<double>, double, int64_t>>((*function)(bytes));
                return HostedRun{std::move(accuracy), milliseconds, samples};
            }};
}

nb::dict tune_graph(const QuantizableGraph& graph, const Stats& stats, const nb::callable& run,
                    const std::vector<bool>& higher_is_better, const nb::object& config_object,
                    const nb::dict& words, const nb::dict& quantize_words,
                    const std::optional<nb::callable>& told, const std::optional<nb::callable>& working) {
    const std::optional<Config> config = config_of(config_object);
    TuneOptions options = config ? tune_options(*config) : TuneOptions();
    apply_search_words(words, options);
    apply_words(quantize_words, options.quantize);
    options.criterion.higher_is_better = higher_is_better;
    Watch watch(working);
    Outcome fp32;
    listen(options, watch, told, fp32);
    GraphHost host = make_host(graph, stats, run);
    HostedResult result;
    std::string content;
    {
        const nb::gil_scoped_release unlocked;
        result = tune_hosted(host, options);
        content = host.write(result.plan).graph.bytes();
    }
    nb::dict entries = to_dict(result);
    entries["plan"] = result.plan.json();
    entries["graph"] = nb::bytes(content.data(), content.size());
    return entries;
}

// What everything on integers means, but for what the words say: a plan as JSON.
std::string graph_plan(const QuantizableGraph& graph, const Stats& stats, const nb::dict& words) {
    QuantizeOptions options;
    apply_words(words, options);
    if (options.plan) return options.plan->json();
    const nb::gil_scoped_release unlocked;
    Plan plan;
    for (HostedOperator& entry : GraphHost(graph, stats, {}).operators())
        plan.operators.push_back(std::move(entry.plan));
    apply_options(plan, options);
    return plan.json();
}

}  // namespace

void bind_hosted(nb::module_& module) {
    module.def("graph_plan", &graph_plan, "graph"_a, "stats"_a, "words"_a);
    module.def("tune_graph", &tune_graph, "graph"_a, "stats"_a, "run"_a, "higher_is_better"_a,
               "config"_a.none(), "options"_a, "quantize"_a, "told"_a.none(), "working"_a.none());
}

}  // namespace kilter::python
