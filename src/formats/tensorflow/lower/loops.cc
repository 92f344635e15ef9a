// map_fn, the loop of detectors: a body for every element of some tensors, whose results are stacked. TensorFlow spells it with frames
// (Enter, Merge, Switch, NextIteration, Exit) and TensorArrays or TensorLists; here it becomes a Scan. Other loops stay opaque.
#include <algorithm>
#include <array>
#include <map>

#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

constexpr int kMostSteps = 64;  // through identities, and of nested values

const TfNode& node_of(const TfGraph& graph, const TfInput& input) {
    const TfNode* node = graph.producer(input);
    if (node == nullptr) not_lowered("'{}' is missing", input.node);
    return *node;
}

const TfInput& input_of(const TfNode& node, size_t index) {
    if (index >= node.data_inputs()) not_lowered("'{}' has no input {}", node.name, index);
    return node.inputs[index];
}

// The node behind identities.
const TfNode& origin(const TfGraph& graph, const TfInput& input) {
    const TfNode* node = &node_of(graph, input);
    for (int i = 0; i < kMostSteps && node->op == "Identity" && node->data_inputs() == 1; ++i)
        node = &node_of(graph, node->inputs[0]);
    return *node;
}

// The Merge of the loop variable that a value in the body is; null when it is none.
const TfNode* variable(const TfGraph& graph, const TfInput& input) {
    const TfNode& side = origin(graph, input);
    if (side.op != "Switch" || side.data_inputs() != 2) return nullptr;
    const TfNode& merge = node_of(graph, input_of(side, 0));
    return merge.op == "Merge" && merge.data_inputs() == 2 ? &merge : nullptr;
}

struct Ends {
    TfInput before;  // what enters the loop
    TfInput next;    // what the body hands on
};

Ends ends_of(const TfGraph& graph, const TfNode& merge) {
    const TfNode& enter = node_of(graph, input_of(merge, 0));
    const TfNode& next = node_of(graph, input_of(merge, 1));
    if (enter.op != "Enter" || next.op != "NextIteration") not_lowered("the loop is not recognised");
    return {input_of(enter, 0), input_of(next, 0)};
}

bool is_number(const TfGraph& graph, const TfInput& input, int64_t number) {
    const std::optional<Tensor> value = constant_of(graph, input);
    return value && value->size() == 1 && value->to_ints()[0] == number;
}

// 0, 1, 2, …
bool is_counter(const TfGraph& graph, const TfNode* merge) {
    if (merge == nullptr) return false;
    const Ends ends = ends_of(graph, *merge);
    const TfNode& sum = origin(graph, ends.next);
    if (!is_number(graph, ends.before, 0) || (sum.op != "AddV2" && sum.op != "Add")) return false;
    return variable(graph, input_of(sum, 0)) == merge && is_number(graph, input_of(sum, 1), 1);
}

bool is_stacking(const TfNode& node) {
    return node.op == "TensorArrayGatherV3" || node.op == "TensorListStack";
}

// What stacks the results of the body: the value that it writes in every step.
struct Stacked {
    const TfNode* node = nullptr;
    TfInput value;
};

// Nothing when the node does not belong to a loop that kilter knows.
std::optional<Stacked> stacked_by(const TfGraph& graph, const TfNode& node) {
    const bool array = node.op == "TensorArrayGatherV3";
    const TfNode& exit = origin(graph, input_of(node, array ? 2 : 0));
    if (exit.op != "Exit") return std::nullopt;
    const TfNode& side = node_of(graph, input_of(exit, 0));
    if (side.op != "Switch") return std::nullopt;
    const TfNode& merge = node_of(graph, input_of(side, 0));
    if (merge.op != "Merge" || merge.data_inputs() != 2) return std::nullopt;
    const TfNode& write = origin(graph, ends_of(graph, merge).next);
    if (write.op != (array ? "TensorArrayWriteV3" : "TensorListSetItem")) return std::nullopt;
    const TfInput& collection = input_of(write, array ? 3 : 0);
    if (variable(graph, collection) != &merge || !is_counter(graph, variable(graph, input_of(write, 1))))
        return std::nullopt;
    return Stacked{&node, input_of(write, 2)};
}

std::string frame_of(const TfGraph& graph, const TfNode& stacking) {
    const TfNode& exit = origin(graph, input_of(stacking, stacking.op == "TensorArrayGatherV3" ? 2 : 0));
    const TfNode& merge = node_of(graph, input_of(node_of(graph, input_of(exit, 0)), 0));
    return node_of(graph, input_of(merge, 0)).attributes.get_string("frame_name");
}

class Body {
  public:
    explicit Body(Lowering& outer)
        : outer_(outer),
          source_(outer.source()),
          graph_(std::make_shared<Graph>()),
          inner_(source_, *graph_) {
        for (const auto& node : source_.nodes())
            for (const TfInput& input : node->inputs)
                ports_[input.node] = std::max(ports_[input.node], input.port + 1);
    }

    void add_result(const TfInput& written) { graph_->add_output(value(written, 0)); }

    //! The stacked results, in order.
    std::vector<Value*> finish() {
        if (slices_.empty()) not_lowered("the loop reads no tensor element by element");
        // The same value may be written twice; results are values of their own.
        Attributes attributes = attributes_of({{"num_scan_inputs", static_cast<int64_t>(slices_.size())}});
        const size_t results = graph_->outputs().size();
        attributes.set("body", std::move(graph_));
        return outer_.emit_many("Scan", slices_, results, std::move(attributes));
    }

  private:
    Value* value(const TfInput& input, int depth) {
        if (depth > kMostSteps) not_lowered("the body of the loop is too deep");
        if (Value* known = inner_.find(input)) return known;
        const TfNode& node = node_of(source_, input);
        if (node.op == "Enter") return define(input, invariant(input_of(node, 0)));
        if (node.op == "TensorArrayReadV3" || node.op == "TensorListGetItem")
            return define(input, slice(node));
        for (const std::string_view other : {"NextIteration", "Exit", "LoopCond"})
            if (node.op == other) not_lowered("there is a loop in the loop");
        if (node.op.starts_with("TensorArray") || node.op.starts_with("TensorList"))
            not_lowered("the body uses {} otherwise", node.op);
        if (const TfNode* merge = variable(source_, input))
            return define(input, invariant(unchanged(*merge)));
        for (const TfInput& before : node.inputs)
            if (!before.control) value(before, depth + 1);
        inner_.lower(node, std::max(ports_.at(node.name), 1));
        Value* made = inner_.find(input);
        if (made == nullptr) not_lowered("'{}' is not computed", input.text());
        if (made->producer() != nullptr && made->producer()->domain() == kOpaqueDomain)
            not_lowered("{}: {}", describe(node), made->producer()->doc);
        return made;
    }

    Value* define(const TfInput& input, Value* value) {
        inner_.define(input, value);
        return value;
    }

    // A value from outside of the loop.
    Value* invariant(const TfInput& input) {
        Value* value = outer_.find(input);
        if (value == nullptr) not_lowered("'{}' is not known before the loop", input.text());
        if (const Tensor* constant = outer_.constant(value)) return graph_->add_constant(*constant);
        return graph_->add_capture(graph_->fresh_name("outer"), value);
    }

    // An element of the tensor that was unstacked before the loop.
    Value* slice(const TfNode& read) {
        const bool array = read.op == "TensorArrayReadV3";
        if (!is_counter(source_, variable(source_, input_of(read, 1))))
            not_lowered("elements are read in another order");
        const TfNode& unstack = collection(input_of(read, array ? 2 : 0));
        if (unstack.op != (array ? "TensorArrayScatterV3" : "TensorListFromTensor"))
            not_lowered("a collection comes from {}", unstack.op);
        Value* whole = outer_.find(input_of(unstack, array ? 2 : 0));
        if (whole == nullptr) not_lowered("'{}' is not known before the loop", unstack.name);
        const auto found = std::ranges::find(slices_, whole);
        if (found != slices_.end()) return graph_->inputs()[static_cast<size_t>(found - slices_.begin())];
        ValueType type = whole->type;
        if (type.shape) {
            if (type.shape->empty()) not_lowered("a number has no elements");
            type.shape->erase(type.shape->begin());
        }
        slices_.push_back(whole);
        return graph_->add_input(graph_->fresh_name("element"), std::move(type));
    }

    // What a variable of the loop is that no step changes.
    TfInput unchanged(const TfNode& merge) const {
        const Ends ends = ends_of(source_, merge);
        if (variable(source_, ends.next) != &merge) not_lowered("the body uses a variable of the loop");
        return ends.before;
    }

    // What fills the collection before the loop: it enters, or is a variable that stays as it is.
    const TfNode& collection(const TfInput& input) const {
        if (const TfNode* merge = variable(source_, input)) return origin(source_, unchanged(*merge));
        const TfNode& enter = origin(source_, input);
        if (enter.op != "Enter") not_lowered("a collection comes from {}", enter.op);
        return origin(source_, input_of(enter, 0));
    }

    Lowering& outer_;
    const TfGraph& source_;
    std::shared_ptr<Graph> graph_;
    Lowering inner_;
    std::map<std::string, int> ports_;  // that anybody reads
    std::vector<Value*> slices_;        // of the outer graph
};

// All results of one loop come from one Scan, which the first of them makes.
void lower_stacked(Lowering& l) {
    const TfGraph& source = l.source();
    const TfNode& asked = l.node();
    if (!stacked_by(source, asked)) not_lowered("the loop is not recognised");
    const std::string frame = frame_of(source, asked);
    std::vector<Stacked> all;
    for (const auto& node : source.nodes()) {
        if (!is_stacking(*node) || node->op != asked.op) continue;
        const std::optional<Stacked> one = stacked_by(source, *node);
        if (one && frame_of(source, *node) == frame) all.push_back(*one);
    }
    Body body(l);
    for (const Stacked& one : all) body.add_result(one.value);
    const std::vector<Value*> results = body.finish();
    for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].node == &asked)
            l.result(results[i]);
        else if (l.find(TfInput::of(all[i].node->name)) == nullptr)
            l.define(TfInput::of(all[i].node->name), results[i]);
    }
}

constexpr std::array kLoopRules{
    LowerRule{"TensorArrayGatherV3", lower_stacked},
    LowerRule{"TensorListStack", lower_stacked},
};

}  // namespace

std::span<const LowerRule> loop_rules() { return kLoopRules; }

}  // namespace kilter::tensorflow
