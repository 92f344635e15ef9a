#include "engine/strips.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <unordered_set>

#include "base/fail.h"
#include "engine/builder.h"
#include "engine/geometry.h"
#include "engine/native/simd.h"
#include "engine/stage.h"

namespace kilter::engine {
namespace {

// What the activations inside a strip may take of a core's second-level cache. Chains with less per thread gain nothing.
constexpr int64_t kStripBytes = int64_t{384} << 10;

// Rows computed twice, as a share of all rows between the first and the depthwise convolution.
constexpr double kMostRepeatedRows = 0.15;

constexpr size_t kFixedInputs = 3;  // x, weights, bias; operands of post-ops follow

bool is_conv(const Node& node) {
    return node.is("Conv") || node.is_kilter("Conv") || node.is_kilter("QConv");
}

size_t id(const Value* value) { return static_cast<size_t>(value->id()); }

Shape shape_of(const Specialized& known, const Value* value) { return known.types[id(value)].static_shape(); }

int64_t row_bytes(const Specialized& known, const Value* value) {
    const Shape shape = shape_of(known, value);
    return static_cast<int64_t>(byte_count(known.types[id(value)].dtype, shape[1] * shape[3]));
}

struct Rows {
    int64_t first = 0, last = 0;  // half-open
    int64_t count() const { return last - first; }
};

// One convolution of a chain with its numbers.
struct Link {
    const Node* node;
    ConvGeometry geometry;
    Shape x, y;

    bool depthwise() const { return geometry.groups > 1 && geometry.groups == x[1] && x[1] == y[1]; }
    bool pointwise() const {
        const auto all = [](const Shape& values, int64_t wanted) {
            return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
        };
        return geometry.groups == 1 && all(geometry.kernel, 1) && all(geometry.strides, 1) &&
               all(geometry.pads_begin, 0) && x[2] == y[2];
    }
    int64_t extent() const { return (geometry.kernel[0] - 1) * (geometry.dilations[0] + 1) + 1; }

    // Rows of x, before and inside its borders, that rows of y need.
    Rows needs(Rows rows) const {
        const int64_t first = rows.first * geometry.strides[0] - geometry.pads_begin[0];
        return {first, first + (rows.count() - 1) * geometry.strides[0] + extent()};
    }
    Rows inside(Rows rows) const { return {std::max<int64_t>(rows.first, 0), std::min(rows.last, x[2])}; }
};

std::optional<Link> link_of(const Specialized& known, const Node& node) {
    if (!is_conv(node)) return std::nullopt;
    const Value* x = node.input(0);
    const Value* weights = node.input(1);
    if (known.constants[id(weights)].empty() || !known.constants[id(x)].empty()) return std::nullopt;
    const DType type = known.types[id(x)].dtype;
    if (type != DType::f32 && type != DType::u8 && type != DType::i8) return std::nullopt;
    Link link{&node, {}, shape_of(known, x), shape_of(known, node.output(0))};
    if (link.x.size() != 4 || std::ranges::find(link.y, 0) != link.y.end()) return std::nullopt;
    const auto geometry = conv_geometry(node, link.x, shape_of(known, weights), link.y, false);
    if (!geometry) return std::nullopt;
    link.geometry = *geometry;
    if (const Value* bias = node.input(2); bias != nullptr && known.constants[id(bias)].empty())
        return std::nullopt;
    // An operand is cut into rows like the result, or it is a constant that all rows share.
    for (size_t i = kFixedInputs; i < node.inputs().size(); ++i) {
        const Value* operand = node.input(i);
        if (operand == nullptr) return std::nullopt;
        const Shape shape = shape_of(known, operand);
        const bool same_rows = shape.size() < 2 || shape[shape.size() - 2] == 1;
        if (!known.constants[id(operand)].empty() ? !same_rows : shape != link.y) return std::nullopt;
    }
    return link;
}

std::vector<Link> links_of(const Specialized& known, const StripChain& chain) {
    std::vector<Link> links;
    for (const Node* node : chain.nodes) links.push_back(*link_of(known, *node));
    return links;
}

// Rows of every link's x for rows of the last y, ends first.
std::vector<Rows> rows_back(const std::vector<Link>& links, Rows rows) {
    std::vector<Rows> needed(links.size());
    for (size_t i = links.size(); i-- > 0;) {
        needed[i] = links[i].needs(rows);
        rows = links[i].inside(needed[i]);
    }
    return needed;
}

// How many strips; 0 when the chain is better left alone.
int64_t count_strips(const Specialized& known, const std::vector<Link>& links, int threads) {
    const int64_t height = links.back().y[2];
    int64_t inner = 0;  // bytes between the links, for the whole image
    for (size_t i = 0; i + 1 < links.size(); ++i)
        inner += links[i].y[2] * row_bytes(known, links[i].node->output(0));
    const Link& depthwise = links[links.size() - 2];
    const int64_t repeated = std::max<int64_t>(depthwise.extent() - depthwise.geometry.strides[0], 0);
    const auto affordable = [&](int64_t strips) {
        const bool first_inside = links.size() > 2;  // else nothing is computed twice
        return strips <= height / 2 &&
               (!first_inside || static_cast<double>(repeated * (strips - 1)) <=
                                     kMostRepeatedRows * static_cast<double>(depthwise.x[2]));
    };
    // One thread gains nothing: the cache it shares with nobody is large enough.
    int64_t strips = threads;
    if (threads < 2 || inner / threads < kStripBytes || !affordable(strips)) return 0;
    while (inner / strips > kStripBytes && affordable(strips + threads)) strips += threads;
    return strips;
}

// A copy of the chain that computes `rows` of the result of one image.
Graph strip_graph(const Specialized& known, const std::vector<Link>& links, const std::vector<Rows>& needed,
                  int64_t rows) {
    Graph graph;
    const auto input = [&](const std::string& name, const Value* like, int64_t count) {
        const Shape shape = shape_of(known, like);
        return graph.add_input(name, ValueType(known.types[id(like)].dtype, {1, shape[1], count, shape[3]}));
    };
    Value* x = input("x", links[0].node->input(0), links[0].inside(needed[0]).count());
    for (size_t i = 0; i < links.size(); ++i) {
        const Link& link = links[i];
        const Node& node = *link.node;
        std::vector<Value*> inputs{x};
        for (size_t j = 1; j < node.inputs().size(); ++j) {
            const Value* value = node.input(j);
            if (value == nullptr) {
                inputs.push_back(nullptr);
            } else if (const Tensor& tensor = known.constants[id(value)]; !tensor.empty()) {
                inputs.push_back(graph.add_constant(tensor));
            } else {
                const int64_t count =
                    i + 1 < links.size() ? links[i + 1].inside(needed[i + 1]).count() : rows;
                inputs.push_back(input(fmt::format("operand{}_{}", i, j), value, count));
            }
        }
        const Rows inside = link.inside(needed[i]);
        Attributes attributes = node.attributes;
        attributes.set("auto_pad", std::string("NOTSET"));
        attributes.set("pads", std::vector<int64_t>{inside.first - needed[i].first,
                                                    link.geometry.pads_begin[1], needed[i].last - inside.last,
                                                    std::max<int64_t>(link.geometry.pads_end[1], 0)});
        Value* y = graph.add_value();
        graph.add_node(node.op(), inputs, {y}, std::move(attributes), node.name, node.domain());
        x = y;
    }
    graph.add_output(x, "y");
    infer_types(graph);
    return graph;
}

// A strip of an image, as the step runs it.
struct Piece {
    size_t plan;                 // which of the step's plans
    std::vector<size_t> inputs;  // bytes from the start of each outer input
    size_t output;
    int lane;
};

class StripStep : public Step {
  public:
    std::vector<Graph> graphs;  // the plans' steps may look at their nodes
    std::vector<Plan> plans;
    std::vector<Piece> pieces;
    std::vector<Array> inputs;
    Array output, scratch;
    size_t lane_bytes = 0;  // of scratch
    int lanes = 1;

    void bind(Execution& execution, size_t index) const override {
        auto state = std::make_shared<std::vector<std::unique_ptr<Execution>>>();
        for (const Piece& piece : pieces)
            state->push_back(std::make_unique<Execution>(
                plans[piece.plan],
                execution.address(scratch) + static_cast<size_t>(piece.lane) * lane_bytes));
        execution.states[index] = std::move(state);
    }

    void run(Execution& execution, size_t index) const override {
        auto& parts = *static_cast<std::vector<std::unique_ptr<Execution>>*>(execution.states[index].get());
        std::exception_ptr failure;
#pragma omp parallel num_threads(lanes) if (lanes > 1)
        {
            const int threads = omp_get_num_threads();
            for (size_t i = 0; i < pieces.size(); ++i) {
                if (pieces[i].lane % threads != omp_get_thread_num() % threads) continue;
                try {
                    run_piece(execution, pieces[i], *parts[i]);
                } catch (...) {
#pragma omp critical(kilter_strip_failed)
                    failure = std::current_exception();
                }
            }
        }
        if (failure != nullptr) std::rethrow_exception(failure);
    }

  private:
    void run_piece(const Execution& execution, const Piece& piece, Execution& part) const {
        const Plan& plan = plans[piece.plan];
        for (size_t i = 0; i < inputs.size(); ++i)
            part.set_external(plan.input_buffers[i], execution.address(inputs[i]) + piece.inputs[i]);
        part.set_external(plan.output_buffers[0], execution.address(output) + piece.output);
        part.run();
    }
};

}  // namespace

std::vector<StripChain> find_strip_chains(const Graph& graph, const Specialized& known, int threads) {
    std::vector<StripChain> chains;
    if (isa() != Isa::avx512) return chains;  // elsewhere activations are not channels-last
    const auto only_reader = [&](const Node& node) -> const Node* {
        return graph.has_single_use(node.output(0)) ? node.output(0)->producer() : nullptr;
    };
    std::unordered_set<const Node*>
        ends;  // the last nodes of chains: a depthwise one may follow and begin another
    for (const Node* node : known.nodes) {
        const std::optional<Link> last = link_of(known, *node);
        if (!last || !last->pointwise()) continue;
        const Node* before = node->input(0)->producer();
        if (before == nullptr || only_reader(*before) == nullptr) continue;
        const std::optional<Link> middle = link_of(known, *before);
        if (!middle || !middle->depthwise()) continue;
        std::vector<Link> links{*middle, *last};
        const Node* front = before->input(0)->producer();
        if (front != nullptr && only_reader(*front) != nullptr && !ends.contains(front)) {
            const std::optional<Link> first = link_of(known, *front);
            // The first convolution of a network reads an image of three channels: cheap to leave where it is.
            if (first && first->geometry.groups == 1 && first->x[1] > 4) links.insert(links.begin(), *first);
        }
        StripChain chain;
        for (const Link& link : links) chain.nodes.push_back(link.node);
        chain.strips = count_strips(known, links, threads);
        if (chain.strips == 0) continue;
        ends.insert(node);
        chains.push_back(std::move(chain));
    }
    return chains;
}

void build_strips(Builder& builder, const StripChain& chain) {
    const Specialized& known = builder.known();
    const std::vector<Link> links = links_of(known, chain);
    const ThreadScope scope(1);  // every strip belongs to one thread
    EngineOptions options = builder.options();
    const int threads = options.threads;
    options.threads = 1;

    auto step = std::make_unique<StripStep>();
    step->lanes = threads;
    std::vector<const Value*> outer;  // the strips' inputs, by the order of the graphs' inputs
    outer.push_back(links[0].node->input(0));
    for (const Link& link : links)
        for (size_t i = kFixedInputs; i < link.node->inputs().size(); ++i)
            if (known.constants[id(link.node->input(i))].empty()) outer.push_back(link.node->input(i));
    for (const Value* value : outer)
        step->inputs.push_back(
            builder.as(value, channels_last_desc(builder.dtype(value), builder.shape(value))));

    const Shape& result = links.back().y;
    const int64_t strips = chain.strips;
    std::map<std::vector<int64_t>, size_t> made;  // geometry of a strip → its plan
    for (int64_t image = 0; image < result[0]; ++image) {
        for (int64_t strip = 0; strip < strips; ++strip) {
            const Rows rows{result[2] * strip / strips, result[2] * (strip + 1) / strips};
            const std::vector<Rows> needed = rows_back(links, rows);
            std::vector<int64_t> key{rows.count()};
            for (size_t i = 0; i < links.size(); ++i) {
                const Rows inside = links[i].inside(needed[i]);
                key.push_back(inside.first - needed[i].first);
                key.push_back(needed[i].last - inside.last);
            }
            const auto [entry, fresh] = made.try_emplace(key, step->plans.size());
            if (fresh) {
                step->graphs.push_back(strip_graph(known, links, needed, rows.count()));
                const Graph& graph = step->graphs.back();
                std::vector<ValueType> types;
                for (const Value* value : graph.inputs()) types.push_back(value->type);
                const Specialized part = specialize(graph, types);
                step->plans.push_back(Builder(graph, part, builder.weights(), options)
                                          .build({graph.outputs()[0].value}, Borders::channels_last));
            }
            Piece piece{entry->second, {}, 0, static_cast<int>(strip * threads / strips)};
            const auto offset = [&](const Value* value, int64_t row) {
                return static_cast<size_t>((image * builder.shape(value)[2] + row) * row_bytes(known, value));
            };
            piece.inputs.push_back(offset(outer[0], links[0].inside(needed[0]).first));
            size_t next = 1;
            for (size_t i = 0; i < links.size(); ++i) {
                const int64_t first =
                    i + 1 < links.size() ? links[i + 1].inside(needed[i + 1]).first : rows.first;
                for (size_t j = kFixedInputs; j < links[i].node->inputs().size(); ++j)
                    if (known.constants[id(links[i].node->input(j))].empty())
                        piece.inputs.push_back(offset(outer[next++], first));
            }
            piece.output = offset(links.back().node->output(0), rows.first);
            step->pieces.push_back(std::move(piece));
        }
    }
    for (const Plan& plan : step->plans)
        step->lane_bytes = std::max(step->lane_bytes, (plan.arena_bytes + 4095) / 4096 * 4096);
    const Value* y = links.back().node->output(0);
    step->output = builder.result(y, channels_last_desc(builder.dtype(y), result));
    step->scratch = builder.lasting_scratch(step->lane_bytes * static_cast<size_t>(threads));
    step->reads = step->inputs;
    step->writes = {step->output};
    step->op = "Strips";
    for (const auto& part : step->plans[0].steps)
        step->kernel += (step->kernel.empty() ? "" : " + ") + part->kernel;
    builder.add_step(std::move(step));
}

}  // namespace kilter::engine
