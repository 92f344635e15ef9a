// Upgrade rules of operators whose attributes became inputs.
#include "base/fail.h"
#include "passes/upgrade_opset.h"

namespace kilter {

void upgrade_clip(Upgrade& u) {
    const DType dtype = u.dtype(0);
    size_t index = 1;
    for (const char* bound : {"min", "max"}) {
        if (u.attributes().has(bound)) {
            Tensor value = Tensor::filled(dtype, {}, u.attributes().get_float(bound));
            u.graph().set_input(u.node(), index, u.constant(bound, std::move(value)));
            u.attributes().erase(bound);
        }
        ++index;
    }
}

void upgrade_dropout(Upgrade& u) {
    u.attributes().erase("is_test");
    if (!u.attributes().has("ratio")) return;
    u.graph().set_input(u.node(), 1,
                        u.constant("ratio", Tensor::scalar<float>(u.attributes().get_float("ratio"))));
    u.attributes().erase("ratio");
}

void upgrade_pad(Upgrade& u) {
    if (const AttributeValue* paddings = u.attributes().find("paddings")) {  // the name in opset 1
        u.attributes().set("pads", *paddings);
        u.attributes().erase("paddings");
    }
    u.attribute_to_input("pads", 1);
    if (!u.attributes().has("value")) return;
    Tensor value = Tensor::filled(u.dtype(0), {}, u.attributes().get_float("value"));
    u.graph().set_input(u.node(), 2, u.constant("value", std::move(value)));
    u.attributes().erase("value");
}

void upgrade_slice(Upgrade& u) {
    u.attribute_to_input("starts", 1);
    u.attribute_to_input("ends", 2);
    u.attribute_to_input("axes", 3);
}

void upgrade_split(Upgrade& u) {
    u.attribute_to_input("split", 1);
    if (u.node().input(1) == nullptr)
        u.attributes().set("num_outputs", static_cast<int64_t>(u.node().outputs().size()));
}

void upgrade_squeeze(Upgrade& u) { u.attribute_to_input("axes", 1); }

void upgrade_reduce(Upgrade& u) { u.attribute_to_input("axes", 1); }

void upgrade_top_k(Upgrade& u) {
    if (!u.attributes().has("k")) return;
    u.graph().set_input(u.node(), 1, u.integers("k", {u.attributes().get_int("k")}));
    u.attributes().erase("k");
}

void upgrade_reshape(Upgrade& u) { u.attribute_to_input("shape", 1); }

void upgrade_dft(Upgrade& u) {
    const int64_t axis = u.attributes().get_int("axis", 1);
    u.attributes().erase("axis");
    u.graph().set_input(u.node(), 2, u.constant("axis", Tensor::scalar<int64_t>(axis)));
}

void upgrade_constant(Upgrade& u) {
    const Attributes& attributes = u.attributes();
    const auto length = [](const auto& values) { return Shape{static_cast<int64_t>(values.size())}; };
    Tensor tensor;
    if (attributes.has("value")) {
        tensor = attributes.get_tensor("value");
    } else if (attributes.has("value_float")) {
        tensor = Tensor::scalar<float>(attributes.get_float("value_float"));
    } else if (attributes.has("value_int")) {
        tensor = Tensor::scalar<int64_t>(attributes.get_int("value_int"));
    } else if (attributes.has("value_string")) {
        tensor = Tensor::strings({}, {attributes.get_string("value_string")});
    } else if (attributes.has("value_floats")) {
        const std::vector<float> values = attributes.get_floats("value_floats");
        tensor = Tensor::of<float>(length(values), values);
    } else if (attributes.has("value_ints")) {
        const std::vector<int64_t> values = attributes.get_ints("value_ints");
        tensor = Tensor::of<int64_t>(length(values), values);
    } else if (attributes.has("value_strings")) {
        const std::vector<std::string> values = attributes.get_strings("value_strings");
        tensor = Tensor::strings(length(values), values);
    }
    if (tensor.empty()) return;  // sparse, or a form of the future: stays an operator
    u.finish_constant(std::move(tensor));
}

}  // namespace kilter
