#include "engine/qdq_graphs.h"

#include <cmath>

namespace kilter::engine::testing {

Attributes with(std::string_view name, AttributeValue value, Attributes attributes) {
    attributes.set(name, std::move(value));
    return attributes;
}

Tensor QdqGraph::numbers(const Shape& shape, double low, double high) {
    std::uniform_real_distribution<float> uniform(static_cast<float>(low), static_cast<float>(high));
    Tensor tensor(DType::f32, shape);
    for (float& value : tensor.as_mutable<float>()) value = uniform(random_);
    return tensor;
}

Value* QdqGraph::input(const Shape& shape, double low, double high, bool dynamic_batch) {
    given_.push_back(numbers(shape, low, high));
    ValueType type = ValueType::of(given_.back());
    if (dynamic_batch) (*type.shape)[0] = Dim("batch");
    return graph_.add_input({}, type);
}

Value* QdqGraph::quantize(Value* x, const Affine& affine) {
    return graph_.add("QuantizeLinear",
                      {x, graph_.add_constant(Tensor::scalar<float>(affine.scale)),
                       graph_.add_constant(Tensor::filled(affine.dtype, {}, affine.zero_point))});
}

Value* QdqGraph::dequantize(Value* x, const Affine& affine) {
    return graph_.add("DequantizeLinear",
                      {x, graph_.add_constant(Tensor::scalar<float>(affine.scale)),
                       graph_.add_constant(Tensor::filled(affine.dtype, {}, affine.zero_point))});
}

Value* QdqGraph::weights(const Shape& shape, int axis, float scale) {
    Tensor integers(DType::i8, shape);
    for (int8_t& value : integers.as_mutable<int8_t>())
        value = static_cast<int8_t>(static_cast<int>(random_() % 255) - 127);
    const Shape scales = axis < 0 ? Shape{} : Shape{shape[static_cast<size_t>(axis)]};
    return graph_.add(
        "DequantizeLinear",
        {graph_.add_constant(integers), graph_.add_constant(numbers(scales, 0.5 * scale, 1.5 * scale)),
         graph_.add_constant(Tensor::filled(DType::i8, scales, 0))},
        with("axis", int64_t{std::max(axis, 0)}));
}

Value* QdqGraph::bias(int64_t count) { return graph_.add_constant(numbers({count}, -2.0, 2.0)); }

Value* QdqGraph::op(std::string_view name, std::vector<Value*> inputs, Attributes attributes,
                    std::string_view domain) {
    return graph_.add(name, std::move(inputs), std::move(attributes), {}, domain);
}

Model QdqGraph::model() const {
    Model model;
    model.graph = graph_.clone();
    model.opsets = {{"", kCanonicalOpset}, {std::string(kKilterDomain), 1}};
    return model;
}

std::vector<Tensor> QdqGraph::run(const EngineOptions& options) const {
    return Program(model(), options).run(given_);
}

void QdqGraph::expect_same_bits() const {
    EngineOptions options;
    options.reference = true;
    const std::vector<Tensor> wanted = run(options);
    options.reference = false;
    for (const int threads : {1, 2}) {
        options.threads = threads;
        expect_close(run(options), wanted, 0.0);
    }
}

void QdqGraph::expect_nearly_same() const {
    EngineOptions options;
    options.reference = true;
    const std::vector<Tensor> wanted = run(options);
    options.reference = false;
    const std::vector<Tensor> found = run(options);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].shape(), wanted[i].shape());
        if (is_float(wanted[i].dtype())) {
            expect_close({found[i]}, {wanted[i]}, 1e-5);
            continue;
        }
        const std::vector<int64_t> left = found[i].to_ints();
        const std::vector<int64_t> right = wanted[i].to_ints();
        int64_t different = 0;
        for (size_t at = 0; at < left.size(); ++at) {
            ASSERT_LE(std::abs(left[at] - right[at]), 1) << "output " << i << ", element " << at;
            different += left[at] != right[at] ? 1 : 0;
        }
        EXPECT_LE(static_cast<double>(different), 0.001 * static_cast<double>(left.size()) + 1)
            << "output " << i;
    }
}

void QdqGraph::expect_float_meaning(double step, double steps) const {
    EngineOptions options;
    const std::vector<Tensor> found = run(options);
    options.optimize = false;
    options.reference = true;
    const std::vector<Tensor> wanted = run(options);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
        const std::vector<double> left = found[i].to_doubles();
        const std::vector<double> right = wanted[i].to_doubles();
        ASSERT_EQ(left.size(), right.size());
        for (size_t at = 0; at < left.size(); ++at)
            ASSERT_NEAR(left[at], right[at], step * steps) << "output " << i << ", element " << at;
    }
}

std::vector<StepReport> QdqGraph::steps() const { return Program(model()).profile(given_, 1); }

size_t QdqGraph::count(std::string_view op, std::string_view domain) const {
    return Program(model()).graph().count(op, domain);
}

}  // namespace kilter::engine::testing
