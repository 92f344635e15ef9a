// Scan of opset 8 works on batches: a Scan over the images of the batch whose body is today's Scan.
#include "base/fail.h"
#include "passes/upgrade_opset.h"

namespace kilter {

void upgrade_scan(Upgrade& u) {
    Node& node = u.node();
    require(node.input(0) == nullptr, "sequence_lens is not supported: export the model with a newer opset");
    const std::shared_ptr<Graph> body = u.attributes().get_graph("body");
    require(body->captures().empty(),
            "a body that reads values from outside is not supported in this old form");
    std::vector<Value*> inputs(node.inputs().begin() + 1, node.inputs().end());
    auto image = std::make_shared<Graph>();
    image->name = "image";
    std::vector<Value*> slices;
    for (size_t i = 0; i < inputs.size(); ++i) {
        require(inputs[i] != nullptr, "input {} is missing", i + 1);
        slices.push_back(image->add_input(image->fresh_name("slice"), {}));
    }
    std::vector<Value*> results;
    for (size_t i = 0; i < node.outputs().size(); ++i) results.push_back(image->add_value());
    Attributes inner;
    inner.set("body", body);
    inner.set("num_scan_inputs", u.attributes().get_int("num_scan_inputs"));
    if (u.attributes().has("directions"))
        inner.set("scan_input_directions", u.attributes().get_ints("directions"));
    image->add_node("Scan", slices, results, std::move(inner), node.name);
    for (Value* result : results) image->add_output(result);
    u.graph().set_inputs(node, inputs);
    u.attributes().erase("directions");
    u.attributes().set("num_scan_inputs", static_cast<int64_t>(inputs.size()));
    u.attributes().set("body", image);
}

}  // namespace kilter
