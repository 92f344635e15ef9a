// Pow of f32 by a constant exponent of another type, and Mod.
#include "engine/builder.h"
#include "engine/native/elementwise.h"

namespace kilter::engine {
namespace {

bool add(Builder& builder, const Node& node, std::string_view op, const Array& a, const Array& b) {
    add_native_binary(builder, op, a, b, elementwise_result(builder, node.output(0), {a, b}));
    return true;
}

bool build_pow(Builder& builder, const Node& node) {
    const Tensor* exponent = builder.constant(node.input(1));
    if (builder.dtype(node.input(0)) != DType::f32 || exponent == nullptr) return false;
    const Array converted =
        builder.derived(*exponent, "f32", DType::f32, exponent->shape(), [&](void* bytes) {
            const std::vector<double> numbers = exponent->to_doubles();
            for (size_t i = 0; i < numbers.size(); ++i)
                static_cast<float*>(bytes)[i] = static_cast<float>(numbers[i]);
        });
    return add(builder, node, "pow", builder.dense(node.input(0)), converted);
}

bool build_mod(Builder& builder, const Node& node) {
    const std::string_view op = node.attributes.get_int("fmod") != 0 ? "fmod" : "mod";
    if (!has_native_binary(op, builder.dtype(node.output(0)))) return false;
    return add(builder, node, op, builder.dense(node.input(0)), builder.dense(node.input(1)));
}

KILTER_KERNEL("Pow", build_pow);
KILTER_KERNEL("Mod", build_mod);

}  // namespace
}  // namespace kilter::engine
