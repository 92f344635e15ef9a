// kilter inspect: what a model is made of and what it costs.
#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/model_file.h"
#include "cli/shapes.h"
#include "kilter/formats/load.h"
#include "kilter/passes/passes.h"
#include "ops/cost.h"
#include "ops/op.h"
#include "report/text.h"

namespace kilter::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
    std::string model;
    LoadOptions load;
    ShapeArguments shapes;
    bool graph = false;
    bool optimized = false;
    bool json = false;
};

// All operators of one kind.
struct Kind {
    std::string op, domain;
    int64_t count = 0;
    int64_t macs = 0;
    bool all_macs_known = true;
    int64_t quantizable = 0;
    bool executable = true;

    std::string label() const { return domain.empty() ? op : domain + "." + op; }
};

struct Summary {
    std::vector<Port> inputs, outputs;
    std::vector<Kind> kinds;  // most frequent first
    std::vector<std::string> quantizable;
    int64_t operators = 0;
    int64_t parameters = 0;
    size_t bytes = 0;
    int64_t macs = 0;
    int64_t quantizable_macs = 0;
    bool all_macs_known = true;
    std::string shapes_problem;  // why MACs are not counted for concrete shapes
};

using Kinds = std::map<std::pair<std::string, std::string>, Kind>;

void count_operators(const Graph& graph, Kinds& kinds, Summary& summary) {
    for (const auto& node : graph.nodes()) {
        Kind& kind = kinds[{node->domain(), node->op()}];
        kind.op = node->op();
        kind.domain = node->domain();
        const OpDefinition* definition = find_op(*node);
        kind.executable = definition != nullptr && definition->kernel != nullptr;
        ++kind.count;
        ++summary.operators;
        const std::optional<int64_t> macs = multiply_accumulates(*node);
        kind.macs += macs.value_or(0);
        kind.all_macs_known &= macs.has_value();
        if (is_quantizable(*node)) {
            ++kind.quantizable;
            summary.quantizable.push_back(node->name.empty() ? node->output()->name() : node->name);
            summary.quantizable_macs += macs.value_or(0);
        }
        for (const Graph* body : node->subgraphs()) count_operators(*body, kinds, summary);
    }
}

std::vector<Port> ports(std::span<Value* const> values) {
    std::vector<Port> result;
    for (const Value* value : values) result.push_back({value->name(), value->type});
    return result;
}

// Gives the inputs the shapes asked for, as far as the options tell them.
void bind_shapes(Graph& graph, const ShapeOptions& options, Summary& summary) {
    try {
        const std::vector<Shape> shapes = resolve_shapes(summary.inputs, options);
        for (size_t i = 0; i < shapes.size(); ++i) graph.inputs()[i]->type.shape = to_dims(shapes[i]);
    } catch (const Error& error) {
        // Without options, open dimensions only mean that MACs cannot be told.
        if (options.batch > 0 || !options.shapes.empty()) throw;
        summary.shapes_problem = error.what();
    }
    // What the file says about inner values was said for its own, possibly symbolic, shapes.
    for (Value* value : graph.values())
        if (value->producer() != nullptr) value->type.shape.reset();
}

Summary summarize(Model& model, const Arguments& arguments) {
    Summary summary;
    summary.inputs = ports(model.graph.inputs());
    for (const Graph::Output& output : model.graph.outputs())
        summary.outputs.push_back(
            {output.name, output.type.dtype == DType::undefined ? output.value->type : output.type});
    summary.parameters = parameter_count(model.graph);
    summary.bytes = parameter_bytes(model.graph);
    canonicalize(model);
    bind_shapes(model.graph, arguments.shapes.parsed(), summary);
    if (arguments.optimized) optimize(model.graph);
    infer_types(model.graph);

    Kinds kinds;
    count_operators(model.graph, kinds, summary);
    for (auto& [key, kind] : kinds) {
        summary.macs += kind.macs;
        summary.all_macs_known &= kind.all_macs_known;
        summary.kinds.push_back(std::move(kind));
    }
    std::ranges::stable_sort(summary.kinds, std::greater(), &Kind::count);
    return summary;
}

Json to_json(const std::vector<Port>& ports) {
    Json list = Json::array();
    for (const Port& port : ports) {
        Json shape;
        if (port.type.shape) {
            shape = Json::array();
            for (const Dim& dim : *port.type.shape) {
                if (dim.known())
                    shape.push_back(dim.value);
                else if (dim.symbol.empty())
                    shape.push_back(nullptr);
                else
                    shape.push_back(dim.symbol);
            }
        }
        list.push_back({{"name", port.name}, {"dtype", name(port.type.dtype)}, {"shape", shape}});
    }
    return list;
}

void print_json(const Model& model, const Summary& summary, const Arguments& arguments) {
    Json operators = Json::array();
    for (const Kind& kind : summary.kinds) {
        Json entry{{"op", kind.op},     {"domain", kind.domain},           {"count", kind.count},
                   {"macs", kind.macs}, {"quantizable", kind.quantizable}, {"executable", kind.executable}};
        operators.push_back(std::move(entry));
    }
    Json opsets = Json::object();
    for (const auto& [domain, version] : model.opsets) opsets[domain] = version;
    Json report{{"model", arguments.model},
                {"producer", model.producer_name},
                {"opsets", opsets},
                {"inputs", to_json(summary.inputs)},
                {"outputs", to_json(summary.outputs)},
                {"parameters", summary.parameters},
                {"parameter_bytes", summary.bytes},
                {"macs", summary.macs},
                {"all_macs_known", summary.all_macs_known},
                {"operators", operators},
                {"quantizable", summary.quantizable}};
    if (arguments.graph) report["graph"] = print(model.graph);
    fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_ports(const char* title, const std::vector<Port>& ports) {
    std::vector<std::vector<std::string>> rows;
    for (const Port& port : ports) rows.push_back({port.name, to_string(port.type)});
    fmt::print("{}\n{}", title, table(rows, {}));
}

void print_text(const std::string& origin, const Summary& summary, const Arguments& arguments) {
    fmt::print("{}: {}\n\n", arguments.model, origin);
    print_ports("inputs", summary.inputs);
    print_ports("outputs", summary.outputs);
    std::vector<std::vector<std::string>> rows{{"operator", "count", "MACs", "could be INT8"}};
    for (const Kind& kind : summary.kinds) {
        const std::string macs = kind.all_macs_known
                                     ? (kind.macs > 0 ? short_number(static_cast<double>(kind.macs)) : "")
                                     : "unknown";
        rows.push_back({kind.label() + (kind.executable ? "" : " (unknown to kilter)"),
                        std::to_string(kind.count), macs,
                        kind.quantizable > 0 ? std::to_string(kind.quantizable) : ""});
    }
    rows.push_back({"total", std::to_string(summary.operators),
                    (summary.all_macs_known ? "" : "over ") + short_number(static_cast<double>(summary.macs)),
                    std::to_string(summary.quantizable.size())});
    fmt::print("\n{}\n", table(rows, {1, 2, 3}, ""));
    fmt::print("parameters  {} ({})\n", short_number(static_cast<double>(summary.parameters)),
               short_bytes(static_cast<double>(summary.bytes)));
    const double share = summary.macs > 0 ? 100.0 * static_cast<double>(summary.quantizable_macs) /
                                                static_cast<double>(summary.macs)
                                          : 0;
    fmt::print("quantizable {} of {} operators, {:.1f} % of the MACs\n", summary.quantizable.size(),
               summary.operators, share);
    if (!summary.shapes_problem.empty()) fmt::print("MACs need shapes: {}\n", summary.shapes_problem);
}

std::string origin_of(const Model& model, ModelFormat format) {
    if (format == ModelFormat::graph_def) return "TensorFlow graph";
    if (format == ModelFormat::saved_model) return "TensorFlow SavedModel";
    std::string origin = fmt::format("ONNX opset {}, IR version {}", model.opset(), model.ir_version);
    if (!model.producer_name.empty())
        origin += fmt::format(", made by {} {}", model.producer_name, model.producer_version);
    return origin;
}

void run(const Arguments& arguments) {
    if (!arguments.json && !arguments.graph) {
        const std::string overview = summarize_file(arguments.model, arguments.load);
        if (!overview.empty()) fmt::print("{}\n", overview);
    }
    Model model = load_model(arguments.model, arguments.load);
    const std::string origin = origin_of(model, format_of(arguments.model));
    const std::string original = arguments.graph && !arguments.optimized ? print(model.graph) : "";
    const Summary summary = about(arguments.model, [&] { return summarize(model, arguments); });
    if (arguments.json) {
        print_json(model, summary, arguments);
    } else if (arguments.graph) {
        fmt::print("{}", arguments.optimized ? print(model.graph) : original);
    } else {
        print_text(origin, summary, arguments);
    }
}

}  // namespace

void add_inspect(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command =
        app.add_subcommand("inspect", "Show inputs, outputs, operators, parameters and MACs of a model");
    command->add_option("MODEL", arguments->model, kModelFile)->required()->type_name("");
    add_load_options(*command, arguments->load);
    add_shape_options(*command, arguments->shapes);
    command->add_flag("--graph", arguments->graph, "Print the graph, one line per operator");
    command->add_flag("--optimized", arguments->optimized, "Look at the graph after kilter's rewrites");
    command->add_flag("--json", arguments->json, "Print everything as JSON");
    command->footer(
        "Examples:\n  kilter inspect model.onnx --batch 16\n  kilter inspect model.onnx --graph --optimized");
    command->callback([arguments] { run(*arguments); });
}

}  // namespace kilter::cli
