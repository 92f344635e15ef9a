#include "formats/tensorflow/tf_graph.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "base/fail.h"

namespace kilter::tensorflow {
namespace {

int parse_port(std::string_view digits, std::string_view whole) {
    int port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    require(error == std::errc() && end == digits.data() + digits.size() && port >= 0 && !digits.empty(),
            "'{}' names no output: expected 'node', 'node:1' or '^node'", whole);
    return port;
}

}  // namespace

TfInput::TfInput(std::string_view text) {
    std::string_view rest = text;
    control = rest.starts_with('^');
    if (control) rest.remove_prefix(1);
    const size_t colon = rest.find(':');
    node = rest.substr(0, colon);
    require(!node.empty(), "'{}' names no output: expected 'node', 'node:1' or '^node'", text);
    if (colon == std::string_view::npos) return;
    rest.remove_prefix(colon + 1);
    const size_t second = rest.find(':');
    if (second != std::string_view::npos) {
        argument = rest.substr(0, second);
        rest.remove_prefix(second + 1);
    }
    require(!control, "'{}' is a control input with a port", text);
    port = parse_port(rest, text);
}

TfInput TfInput::of(std::string node, int port) {
    TfInput input;
    input.node = std::move(node);
    input.port = port;
    return input;
}

std::string TfInput::text() const {
    if (control) return "^" + node;
    if (!argument.empty()) return fmt::format("{}:{}:{}", node, argument, port);
    return port == 0 ? node : fmt::format("{}:{}", node, port);
}

size_t TfNode::data_inputs() const {
    return static_cast<size_t>(std::ranges::count(inputs, false, &TfInput::control));
}

std::string describe(const TfNode& node) { return fmt::format("node '{}' ({})", node.name, node.op); }

TfGraph::TfGraph(const TfGraph& other)
    : functions(other.functions),
      library_foreign(other.library_foreign),
      has_library(other.has_library),
      producer_version(other.producer_version),
      min_consumer(other.min_consumer),
      bad_consumers(other.bad_consumers),
      foreign(other.foreign),
      source(other.source) {
    for (const auto& node : other.nodes_) add(*node);
}

TfGraph& TfGraph::operator=(const TfGraph& other) {
    if (this != &other) *this = TfGraph(other);
    return *this;
}

TfNode* TfGraph::find(std::string_view name) {
    const auto found = by_name_.find(std::string(name));
    return found == by_name_.end() ? nullptr : found->second;
}

const TfNode* TfGraph::find(std::string_view name) const { return const_cast<TfGraph*>(this)->find(name); }

const TfFunction* TfGraph::find_function(std::string_view name) const {
    const auto found = std::ranges::find(functions, name, &TfFunction::name);
    return found == functions.end() ? nullptr : &*found;
}

TfNode& TfGraph::add(TfNode node) {
    require(!node.name.empty(), "a node ({}) has no name", node.op);
    auto owned = std::make_unique<TfNode>(std::move(node));
    const bool added = by_name_.emplace(owned->name, owned.get()).second;
    require(added, "two nodes are called '{}'", owned->name);
    nodes_.push_back(std::move(owned));
    return *nodes_.back();
}

TfNode& TfGraph::add(std::string name, std::string op, std::vector<TfInput> inputs, TfAttributes attributes) {
    TfNode node;
    node.name = std::move(name);
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    return add(std::move(node));
}

TfNode& TfGraph::add_constant(std::string name, Tensor value) {
    return add_constant(std::move(name), TfTensor(std::move(value)));
}

TfNode& TfGraph::add_constant(std::string name, TfTensor value) {
    TfAttributes attributes;
    attributes.set("dtype", value.type());
    attributes.set("value", std::move(value));
    return add(std::move(name), "Const", {}, std::move(attributes));
}

void TfGraph::remove(std::span<const TfNode* const> nodes) {
    std::unordered_set<const TfNode*> going(nodes.begin(), nodes.end());
    for (const TfNode* node : nodes) by_name_.erase(node->name);
    std::erase_if(nodes_, [&](const auto& node) { return going.contains(node.get()); });
}

void TfGraph::replace_uses(const TfInput& from, const TfInput& to) {
    for (const auto& node : nodes_) {
        for (TfInput& input : node->inputs) {
            if (input.node != from.node) continue;
            if (input.control && from.port == 0)
                input.node = to.node;
            else if (!input.control && input.port == from.port)
                input = to;
        }
    }
}

void TfGraph::rename(TfNode& node, std::string name) {
    require(!by_name_.contains(name), "two nodes are called '{}'", name);
    for (const auto& reader : nodes_)
        for (TfInput& input : reader->inputs)
            if (input.node == node.name) input.node = name;
    by_name_.erase(node.name);
    node.name = std::move(name);
    by_name_.emplace(node.name, &node);
}

std::string TfGraph::fresh_name(std::string_view stem) const {
    std::string name(stem);
    for (int i = 1; by_name_.contains(name); ++i) name = fmt::format("{}_{}", stem, i);
    return name;
}

std::vector<TfNode*> TfGraph::sorted() {
    // Depth first without recursion: graphs are as deep as somebody makes them.
    enum class State : uint8_t { unseen, open, done };
    std::unordered_map<const TfNode*, State> states;
    std::vector<TfNode*> order;
    struct Frame {
        TfNode* node;
        size_t next;
    };
    std::vector<Frame> stack;
    for (const auto& root : nodes_) {
        if (states[root.get()] != State::unseen) continue;
        states[root.get()] = State::open;
        stack.push_back({root.get(), 0});
        while (!stack.empty()) {
            Frame& frame = stack.back();
            if (frame.next == frame.node->inputs.size()) {
                states[frame.node] = State::done;
                order.push_back(frame.node);
                stack.pop_back();
                continue;
            }
            TfNode* before = find(frame.node->inputs[frame.next++].node);
            const bool feeds_back =
                before != nullptr && (before->op == "NextIteration" || before->op == "RefNextIteration");
            if (before == nullptr || feeds_back) continue;
            State& state = states[before];
            require(state != State::open, "{} is part of a cycle", describe(*before));
            if (state == State::done) continue;
            state = State::open;
            stack.push_back({before, 0});
        }
    }
    return order;
}

std::vector<const TfNode*> TfGraph::sorted() const {
    const std::vector<TfNode*> order = const_cast<TfGraph*>(this)->sorted();
    return {order.begin(), order.end()};
}

std::unordered_map<std::string, std::vector<TfGraph::Use>> TfGraph::uses() {
    std::unordered_map<std::string, std::vector<Use>> result;
    for (const auto& node : nodes_)
        for (size_t i = 0; i < node->inputs.size(); ++i)
            result[node->inputs[i].node].push_back({node.get(), i});
    return result;
}

void check(const TfGraph& graph) {
    for (const auto& node : graph.nodes()) {
        require(!node->op.empty(), "node '{}' has no operator", node->name);
        bool control = false;
        for (const TfInput& input : node->inputs) {
            require(graph.find(input.node) != nullptr, "{}: input '{}' does not exist", describe(*node),
                    input.text());
            require(input.argument.empty(), "{}: input '{}' has the form of a function body", describe(*node),
                    input.text());
            require(!control || input.control, "{}: data input '{}' follows a control input", describe(*node),
                    input.text());
            control = input.control;
        }
    }
    static_cast<void>(graph.sorted());
}

std::optional<Tensor> constant_of(const TfGraph& graph, const TfInput& input) {
    const TfNode* node = graph.producer(input);
    // A chain of Identity nodes that does not end is a cycle, which `check` refuses; the bound guards unchecked graphs.
    for (size_t steps = 0; node != nullptr && node->op == "Identity" && steps < graph.size(); ++steps)
        node = node->inputs.empty() ? nullptr : graph.producer(node->inputs[0]);
    if (node == nullptr || node->op != "Const" || input.port != 0) return std::nullopt;
    try {
        return node->attributes.get_tensor("value").decode();
    } catch (const Error& error) {
        throw error.in(describe(*node));
    }
}

}  // namespace kilter::tensorflow
