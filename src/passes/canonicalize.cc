// canonicalize: domain names normalised, local functions inlined, every operator in the form of
// kCanonicalOpset.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/fail.h"
#include "kilter/passes/passes.h"
#include "passes/expand_gradient.h"
#include "passes/inline_function.h"
#include "passes/upgrade_opset.h"

namespace kilter {
namespace {

using Opsets = std::vector<std::pair<std::string, int64_t>>;

// Functions calling functions can grow exponentially; no real model comes near this many operators.
constexpr size_t kMaxInlinedNodes = 200000;

// IR version that goes with kCanonicalOpset.
constexpr int64_t kCanonicalIr = 10;

std::string_view normalized(std::string_view domain) {
    return domain == "ai.onnx" ? std::string_view() : domain;
}

class Canonicalizer {
  public:
    explicit Canonicalizer(Model& model) : model_(model) {
        for (const Function& function : model.functions)
            functions_.emplace(
                std::tuple(std::string(normalized(function.domain)), function.name, function.overload),
                &function);
    }

    void run() {
        process(model_.graph, std::max<int64_t>(model_.opset(), 1));
        update_opsets();
        model_.functions.clear();
        model_.ir_version = std::max(model_.ir_version, kCanonicalIr);
    }

  private:
    void process(Graph& graph, int64_t opset) {
        graph.sort();
        NodeInference infer(graph);
        std::vector<Node*> nodes;
        for (const auto& node : graph.nodes()) nodes.push_back(node.get());
        std::vector<Node*> replaced;
        process(graph, nodes, opset, infer, replaced);
        graph.remove_nodes(replaced);
        graph.sort();
    }

    // `nodes` are in topological order, so that types are known as far as they can be when a rule asks for
    // them.
    void process(Graph& graph, const std::vector<Node*>& nodes, int64_t opset, NodeInference& infer,
                 std::vector<Node*>& replaced) {
        for (Node* node : nodes) {
            if (node->domain() != normalized(node->domain())) graph.set_op(*node, std::string(node->op()));
            const auto found = functions_.find(std::tuple(node->domain(), node->op(), node->overload));
            if (found != functions_.end()) {
                expand(graph, *node, *found->second, opset, infer, replaced);
                continue;
            }
            for (Graph* body : node->subgraphs()) {
                for (Value* capture : body->captures()) capture->type = capture->outer()->type;
                process(*body, opset);
            }
            if (node->op() == "Gradient" && node->domain() == kTrainingDomain) {
                write_out_gradient(graph, *node);
                replaced.push_back(node);
                continue;
            }
            if (!Upgrade(graph, *node, opset, infer).run()) replaced.push_back(node);
        }
    }

    static void write_out_gradient(Graph& graph, Node& gradient) {
        try {
            expand_gradient(graph, gradient);
        } catch (const Error& error) {
            throw error.in(describe(gradient));
        }
    }

    void expand(Graph& graph, Node& call, const Function& function, int64_t opset, NodeInference& infer,
                std::vector<Node*>& replaced) {
        require(std::find(active_.begin(), active_.end(), &function) == active_.end(),
                "{}: the function calls itself", describe(call));
        inlined_ += function.body.nodes().size() + 1;
        require(inlined_ <= kMaxInlinedNodes,
                "inlining the functions of the model makes more than {} operators", kMaxInlinedNodes);
        for (const auto& [domain, version] : function.opsets) {
            if (normalized(domain).empty())
                opset = version;
            else
                extra_opsets_.emplace(domain, version);
        }
        active_.push_back(&function);
        process(graph, inline_function(graph, call, function), opset, infer, replaced);
        replaced.push_back(&call);
        active_.pop_back();
    }

    void update_opsets() {
        Opsets opsets{{"", std::max<int64_t>(model_.opset(), kCanonicalOpset)}};
        std::set<std::string> listed{""};
        const auto add = [&](const std::string& domain, int64_t version) {
            if (listed.insert(std::string(normalized(domain))).second) opsets.emplace_back(domain, version);
        };
        for (const auto& [domain, version] : model_.opsets) add(domain, version);
        for (const auto& [domain, version] : extra_opsets_) add(domain, version);
        model_.opsets = std::move(opsets);
    }

    Model& model_;
    std::map<std::tuple<std::string, std::string, std::string>, const Function*> functions_;
    std::vector<const Function*> active_;
    std::map<std::string, int64_t> extra_opsets_;
    size_t inlined_ = 0;
};

}  // namespace

void canonicalize(Model& model) {
    try {
        Canonicalizer(model).run();
    } catch (const Error& error) {
        throw model.source.empty() ? error : error.in(model.source);
    }
}

}  // namespace kilter
