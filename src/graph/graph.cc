#include "kilter/graph/graph.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "base/fail.h"

namespace kilter {

std::string describe(const Node& node) {
    const std::string op = node.domain().empty() ? node.op() : node.domain() + "." + node.op();
    if (!node.name.empty()) return fmt::format("operator '{}' ({})", node.name, op);
    const Value* output = node.output(0);
    return output != nullptr ? fmt::format("operator ({}) that makes '{}'", op, output->name())
                             : fmt::format("operator ({})", op);
}

std::vector<Graph*> Node::subgraphs() const {
    std::vector<Graph*> found;
    for (const auto& [name, value] : attributes) {
        if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&value)) found.push_back(graph->get());
        if (const auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value))
            for (const auto& graph : *graphs) found.push_back(graph.get());
    }
    return found;
}

Graph::Graph() = default;
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Value* Graph::add_value(std::string value_name, ValueType type) {
    if (value_name.empty()) value_name = fresh_name("value");
    require(!by_name_.contains(value_name), "value '{}' is defined twice", value_name);
    auto value = std::make_unique<Value>();
    value->name_ = std::move(value_name);
    value->id_ = static_cast<int>(values_.size());
    value->type = std::move(type);
    by_name_.emplace(value->name_, value.get());
    values_.push_back(std::move(value));
    return values_.back().get();
}

Value* Graph::add_input(std::string value_name, ValueType type) {
    Value* value = add_value(std::move(value_name), std::move(type));
    value->is_input_ = true;
    inputs_.push_back(value);
    return value;
}

Value* Graph::add_constant(Tensor tensor, std::string value_name) {
    require(!tensor.empty(), "internal error: an empty constant");
    Value* value =
        add_value(value_name.empty() ? fresh_name("constant") : std::move(value_name), ValueType::of(tensor));
    value->constant_ = std::move(tensor);
    return value;
}

void Graph::add_output(Value* value, std::string output_name) {
    if (output_name.empty()) output_name = value->name();
    outputs_.push_back({std::move(output_name), value, value->type, {}, {}});
}

void Graph::add_output(Output output) { outputs_.push_back(std::move(output)); }

Value* Graph::add_capture(std::string value_name, Value* outer) {
    Value* value = add_value(std::move(value_name), outer->type);
    value->outer_ = outer;
    captures_.push_back(value);
    return value;
}

void Graph::set_outer(Value* capture, Value* outer) {
    require(capture->outer_ != nullptr && outer != nullptr, "internal error: '{}' is not captured",
            capture->name());
    capture->outer_ = outer;
}

Node* Graph::add_node(std::string_view op, std::vector<Value*> inputs, std::vector<Value*> outputs,
                      Attributes attributes, std::string node_name, std::string_view domain) {
    auto owned = std::make_unique<Node>();
    Node* node = owned.get();
    node->op_ = op;
    node->domain_ = domain;
    node->name = std::move(node_name);
    node->attributes = std::move(attributes);
    nodes_.push_back(std::move(owned));
    node->inputs_ = std::move(inputs);
    for (Value* value : node->inputs_)
        if (value != nullptr) link(node, value);
    for (size_t i = 0; i < outputs.size(); ++i) set_output(*node, i, outputs[i]);
    if (!node->subgraphs().empty()) update_captures(*node);
    return node;
}

Value* Graph::add(std::string_view op, std::vector<Value*> inputs, Attributes attributes,
                  std::string node_name, std::string_view domain) {
    Value* output = add_value(fresh_name(node_name.empty() ? op : std::string_view(node_name)));
    add_node(op, std::move(inputs), {output}, std::move(attributes), std::move(node_name), domain);
    return output;
}

std::string Graph::fresh_name(std::string_view stem) {
    std::string candidate(stem);
    while (candidate.empty() || by_name_.contains(candidate))
        candidate = fmt::format("{}_{}", stem, ++next_fresh_);
    return candidate;
}

void Graph::link(Node* node, Value* value) { value->users_.push_back(node); }

void Graph::unlink(Node* node, Value* value) {
    const auto use = std::find(value->users_.begin(), value->users_.end(), node);
    if (use != value->users_.end()) value->users_.erase(use);
}

void Graph::set_input(Node& node, size_t index, Value* value) {
    if (index >= node.inputs_.size()) node.inputs_.resize(index + 1, nullptr);
    if (node.inputs_[index] != nullptr) unlink(&node, node.inputs_[index]);
    node.inputs_[index] = value;
    if (value != nullptr) link(&node, value);
}

void Graph::set_inputs(Node& node, std::vector<Value*> inputs) {
    for (Value* value : node.inputs_)
        if (value != nullptr) unlink(&node, value);
    node.inputs_ = std::move(inputs);
    for (Value* value : node.inputs_)
        if (value != nullptr) link(&node, value);
}

void Graph::set_output(Node& node, size_t index, Value* value) {
    if (index >= node.outputs_.size()) node.outputs_.resize(index + 1, nullptr);
    if (Value* old = node.outputs_[index]; old != nullptr) {
        old->producer_ = nullptr;
        old->producer_index_ = -1;
    }
    node.outputs_[index] = value;
    if (value == nullptr) return;
    require(
        value->producer_ == nullptr && !value->is_input_ && !value->is_constant() && value->outer_ == nullptr,
        "value '{}' is computed twice: again by {}", value->name(), describe(node));
    value->producer_ = &node;
    value->producer_index_ = static_cast<int>(index);
}

void Graph::set_op(Node& node, std::string_view op, std::string_view domain) {
    node.op_ = op;
    node.domain_ = domain;
}

void Graph::replace_uses(Value* from, Value* to) {
    if (from == to) return;
    for (Node* user : std::vector<Node*>(from->users_)) {
        for (size_t i = 0; i < user->inputs_.size(); ++i)
            if (user->inputs_[i] == from) set_input(*user, i, to);
        bool captured = false;
        for (Graph* body : user->subgraphs())
            for (Value* inner : body->captures_)
                if (inner->outer_ == from) {
                    inner->outer_ = to;
                    captured = true;
                }
        if (captured) update_captures(*user);
    }
    for (Output& output : outputs_)
        if (output.value == from) output.value = to;
}

void Graph::replace_constant(Value* value, Tensor tensor) {
    require(value->is_constant(), "internal error: '{}' is not a constant", value->name());
    value->type = ValueType::of(tensor);
    value->constant_ = std::move(tensor);
}

void Graph::make_constant(Value* value, Tensor tensor) {
    if (Node* node = value->producer_; node != nullptr) {
        node->outputs_[static_cast<size_t>(value->producer_index_)] = nullptr;
        value->producer_ = nullptr;
        value->producer_index_ = -1;
    }
    value->type = ValueType::of(tensor);
    value->constant_ = std::move(tensor);
}

void Graph::rename(Value* value, std::string value_name) {
    if (value->name_ == value_name) return;
    require(!by_name_.contains(value_name), "value '{}' is defined twice", value_name);
    by_name_.erase(value->name_);
    value->name_ = std::move(value_name);
    by_name_.emplace(value->name_, value);
}

void Graph::set_output_value(size_t index, Value* value) { outputs_.at(index).value = value; }

void Graph::update_captures(Node& node) {
    // Forget what this node captured so far: uses beyond those of its formal inputs.
    for (const auto& value : values_) {
        if (value == nullptr || value->users_.empty()) continue;
        const auto formal = std::count(node.inputs_.begin(), node.inputs_.end(), value.get());
        auto uses = std::count(value->users_.begin(), value->users_.end(), &node);
        for (; uses > formal; --uses) unlink(&node, value.get());
    }
    for (Graph* body : node.subgraphs())
        for (Value* inner : body->captures_)
            if (inner->outer_ != nullptr) link(&node, inner->outer_);
}

void Graph::bind_capture(Value* inner, Value* outer) { inner->outer_ = outer; }

void Graph::remove_value(Value* value) {
    require(value->users_.empty() && value->producer_ == nullptr && !is_output(value),
            "internal error: value '{}' is still used", value->name());
    std::erase(captures_, value);
    std::erase(inputs_, value);
    by_name_.erase(value->name_);
    values_[static_cast<size_t>(value->id_)].reset();
}

void Graph::remove_input(Value* value) { remove_value(value); }

void Graph::detach(Node* node) {
    for (Value* output : node->outputs_) {
        if (output == nullptr) continue;
        output->producer_ = nullptr;
        output->producer_index_ = -1;
        remove_value(output);
    }
    node->outputs_.clear();
    set_inputs(*node, {});
    if (!node->subgraphs().empty()) {
        node->attributes = {};
        update_captures(*node);
    }
}

void Graph::remove_node(Node* node) { remove_nodes({&node, 1}); }

void Graph::remove_nodes(std::span<Node* const> nodes) {
    for (Node* node : nodes) detach(node);
    const std::unordered_set<const Node*> removed(nodes.begin(), nodes.end());
    std::erase_if(nodes_, [&](const auto& owned) { return removed.contains(owned.get()); });
}

size_t Graph::remove_dead() {
    std::vector<char> is_out(values_.size(), 0);
    for (const Output& output : outputs_) is_out[static_cast<size_t>(output.value->id())] = 1;
    std::vector<Node*> pending;
    const auto dead = [&](const Node* node) {
        return std::all_of(node->outputs_.begin(), node->outputs_.end(), [&](const Value* value) {
            return value == nullptr ||
                   (value->users_.empty() && is_out[static_cast<size_t>(value->id())] == 0);
        });
    };
    std::unordered_map<Node*, bool> removed;
    for (const auto& node : nodes_)
        if (dead(node.get())) pending.push_back(node.get());
    while (!pending.empty()) {
        Node* node = pending.back();
        pending.pop_back();
        if (removed[node]) continue;
        removed[node] = true;
        std::vector<Node*> producers;
        for (Value* value : node->inputs_)
            if (value != nullptr && value->producer_ != nullptr) producers.push_back(value->producer_);
        for (Graph* body : node->subgraphs())
            for (Value* inner : body->captures_)
                if (inner->outer_ != nullptr && inner->outer_->producer_ != nullptr)
                    producers.push_back(inner->outer_->producer_);
        set_inputs(*node, {});
        if (!node->subgraphs().empty()) {
            node->attributes = {};
            update_captures(*node);
        }
        for (Value* output : node->outputs_) {
            if (output == nullptr) continue;
            output->producer_ = nullptr;
            output->producer_index_ = -1;
            remove_value(output);
        }
        node->outputs_.clear();
        for (Node* producer : producers)
            if (!removed[producer] && dead(producer)) pending.push_back(producer);
    }
    const size_t count = std::erase_if(nodes_, [&](const auto& node) {
        const auto entry = removed.find(node.get());
        return entry != removed.end() && entry->second;
    });
    for (const auto& value : std::vector<Value*>(constants()))
        if (value->users_.empty() && is_out[static_cast<size_t>(value->id())] == 0) remove_value(value);
    for (Value* capture : std::vector<Value*>(captures_))
        if (capture->users_.empty() && !is_output(capture)) remove_value(capture);
    return count;
}

void Graph::sort() {
    // Kahn's algorithm with the present position as priority, so that an ordered graph keeps its order.
    std::unordered_map<const Node*, size_t> position;
    for (size_t i = 0; i < nodes_.size(); ++i) position.emplace(nodes_[i].get(), i);
    std::vector<size_t> waiting(nodes_.size(), 0);
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (const auto& value : values_)
        if (value != nullptr && value->producer_ != nullptr)
            for (const Node* user : value->users_) ++waiting[position.at(user)];
    for (size_t i = 0; i < nodes_.size(); ++i)
        if (waiting[i] == 0) ready.push(i);
    std::vector<size_t> order;
    order.reserve(nodes_.size());
    while (!ready.empty()) {
        const size_t index = ready.top();
        ready.pop();
        order.push_back(index);
        for (const Value* output : nodes_[index]->outputs_) {
            if (output == nullptr) continue;
            for (const Node* user : output->users_) {
                const size_t next = position.at(user);
                if (--waiting[next] == 0) ready.push(next);
            }
        }
    }
    if (order.size() != nodes_.size()) {
        std::string names;
        for (size_t i = 0, shown = 0; i < nodes_.size() && shown < 5; ++i)
            if (waiting[i] != 0) names += (shown++ == 0 ? "" : ", ") + describe(*nodes_[i]);
        fail("the graph has a cycle through {}", names);
    }
    std::vector<std::unique_ptr<Node>> sorted;
    sorted.reserve(nodes_.size());
    for (const size_t index : order) sorted.push_back(std::move(nodes_[index]));
    nodes_ = std::move(sorted);
}

std::vector<Value*> Graph::constants() const {
    std::vector<Value*> found;
    for (const auto& value : values_)
        if (value != nullptr && value->is_constant()) found.push_back(value.get());
    return found;
}

std::vector<Value*> Graph::values() const {
    std::vector<Value*> found;
    for (const auto& value : values_)
        if (value != nullptr) found.push_back(value.get());
    return found;
}

int Graph::value_limit() const { return static_cast<int>(values_.size()); }

Value* Graph::find(std::string_view value_name) const {
    const auto entry = by_name_.find(std::string(value_name));
    return entry == by_name_.end() ? nullptr : entry->second;
}

const Tensor* Graph::constant(const Value* value) const {
    return value != nullptr && value->is_constant() ? &value->constant_ : nullptr;
}

bool Graph::is_output(const Value* value) const {
    return std::any_of(outputs_.begin(), outputs_.end(),
                       [&](const Output& output) { return output.value == value; });
}

bool Graph::has_single_use(const Value* value) const {
    return value->users_.size() == 1 && !is_output(value);
}

size_t Graph::count(std::string_view op, std::string_view domain) const {
    return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& node) {
        return node->op() == op && node->domain() == domain;
    }));
}

Graph Graph::clone() const {
    Graph copy;
    copy.name = name;
    copy.doc = doc;
    copy.foreign = foreign;
    copy.next_fresh_ = next_fresh_;
    std::vector<Value*> map(values_.size(), nullptr);
    const auto mapped = [&](const Value* value) {
        return value == nullptr ? nullptr : map[static_cast<size_t>(value->id())];
    };
    copy.values_.resize(values_.size());
    for (const auto& value : values_) {
        if (value == nullptr) continue;
        auto twin = std::make_unique<Value>();
        twin->name_ = value->name_;
        twin->id_ = value->id_;
        twin->type = value->type;
        twin->doc = value->doc;
        twin->foreign = value->foreign;
        twin->listed_as_input = value->listed_as_input;
        twin->is_input_ = value->is_input_;
        twin->constant_ = value->constant_;
        twin->outer_ = value->outer_;
        copy.by_name_.emplace(twin->name_, twin.get());
        map[static_cast<size_t>(value->id_)] = twin.get();
        copy.values_[static_cast<size_t>(value->id_)] = std::move(twin);
    }
    for (const Value* value : inputs_) copy.inputs_.push_back(mapped(value));
    for (const Value* value : captures_) copy.captures_.push_back(mapped(value));
    for (const Output& output : outputs_)
        copy.outputs_.push_back({output.name, mapped(output.value), output.type, output.doc, output.foreign});
    const auto cloned_body = [&](const std::shared_ptr<Graph>& body) {
        auto twin = std::make_shared<Graph>(body->clone());
        for (Value* inner : twin->captures_) inner->outer_ = mapped(inner->outer_);
        return twin;
    };
    for (const auto& node : nodes_) {
        Attributes attributes = node->attributes;
        for (auto& [key, value] : attributes) {
            if (auto* body = std::get_if<std::shared_ptr<Graph>>(&value)) *body = cloned_body(*body);
            if (auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&value))
                for (auto& body : *bodies) body = cloned_body(body);
        }
        std::vector<Value*> inputs;
        std::vector<Value*> outputs;
        for (const Value* value : node->inputs_) inputs.push_back(mapped(value));
        for (const Value* value : node->outputs_) outputs.push_back(mapped(value));
        const bool bodies = !node->subgraphs().empty();
        Attributes later;
        if (bodies) std::swap(later, attributes);
        Node* twin = copy.add_node(node->op_, std::move(inputs), std::move(outputs), std::move(attributes),
                                   node->name, node->domain_);
        if (bodies) {
            twin->attributes = std::move(later);
            copy.update_captures(*twin);
        }
        twin->doc = node->doc;
        twin->overload = node->overload;
        twin->origins = node->origins;
        twin->foreign = node->foreign;
    }
    return copy;
}

int64_t Model::opset(std::string_view domain_name) const {
    for (const auto& [imported, version] : opsets)
        if (imported == domain_name || (domain_name.empty() && imported == "ai.onnx")) return version;
    return 0;
}

Model clone(const Model& model) {
    Model copy;
    copy.graph = model.graph.clone();
    copy.opsets = model.opsets;
    for (const Function& function : model.functions) {
        Function twin;
        twin.domain = function.domain;
        twin.name = function.name;
        twin.overload = function.overload;
        twin.doc = function.doc;
        twin.attributes = function.attributes;
        twin.defaults = function.defaults;
        twin.opsets = function.opsets;
        twin.body = function.body.clone();
        twin.foreign = function.foreign;
        copy.functions.push_back(std::move(twin));
    }
    copy.ir_version = model.ir_version;
    copy.model_version = model.model_version;
    copy.producer_name = model.producer_name;
    copy.producer_version = model.producer_version;
    copy.domain = model.domain;
    copy.doc = model.doc;
    copy.metadata = model.metadata;
    copy.foreign = model.foreign;
    copy.source = model.source;
    return copy;
}

}  // namespace kilter
