// What the tests of quantization share: small networks in optimized form, calibrated and quantized in one call.
#pragma once

#include <gtest/gtest.h>

#include "engine/ref/executor.h"
#include "kilter/base/error.h"
#include "kilter/quantization/quantize.h"
#include "ops/post_ops.h"
#include "passes/pass_test.h"
#include "quantization/eligibility.h"
#include "quantization/recipes.h"

namespace kilter::testing {

inline const Node* produced_by_dequantize(const Value* value) {
    return value->producer() != nullptr && value->producer()->is("DequantizeLinear") ? value->producer()
                                                                                     : nullptr;
}

//! Exact statistics of every value, from the reference executor.
inline Stats observe(const Graph& graph, const std::vector<Tensor>& inputs) {
    Stats stats;
    const auto watch = [&](const Value& value, const Tensor& tensor) {
        if (tensor.dtype() != DType::f32 || tensor.size() == 0) return;
        ValueStats& seen = stats.values[value.name()];
        const std::span<const float> values = tensor.as<float>();
        seen.count = tensor.size();
        seen.min = *std::ranges::min_element(values);
        seen.max = *std::ranges::max_element(values);
        seen.histogram.add(values);
        seen.channel_axis = tensor.rank() == 4 ? 1 : tensor.rank() - 1;
        if (seen.channel_axis < 0) return;
        const auto channels = static_cast<size_t>(tensor.dim(seen.channel_axis));
        size_t inner = 1;
        for (int i = seen.channel_axis + 1; i < tensor.rank(); ++i)
            inner *= static_cast<size_t>(tensor.dim(i));
        seen.channel_min.assign(channels, std::numeric_limits<float>::max());
        seen.channel_max.assign(channels, std::numeric_limits<float>::lowest());
        seen.channel_mean.assign(channels, 0.0);
        for (size_t i = 0; i < values.size(); ++i) {
            const size_t c = i / inner % channels;
            seen.channel_min[c] = std::min(seen.channel_min[c], values[i]);
            seen.channel_max[c] = std::max(seen.channel_max[c], values[i]);
            seen.channel_mean[c] +=
                values[i] / (static_cast<double>(values.size()) / static_cast<double>(channels));
        }
    };
    ref::run(graph, inputs, watch);
    for (size_t i = 0; i < inputs.size(); ++i) watch(*graph.inputs()[i], inputs[i]);
    stats.samples = 1;
    return stats;
}

//! A quantized network and what it was made from.
struct Quantized {
    Graph original;
    std::vector<Tensor> inputs;
    Stats stats;
    QuantizedModel result;

    const Graph& graph() const { return result.model.graph; }
    const Node& node(std::string_view name) const {
        for (const auto& node : graph().nodes())
            if (node->name == name) return *node;
        throw Error("no operator " + std::string(name));
    }
    const ValueReport& value(std::string_view name) const {
        for (const ValueReport& value : result.report.values)
            if (value.value == name) return value;
        throw Error("value " + std::string(name) + " is not quantized");
    }
    const OperatorReport& report(std::string_view name) const {
        for (const OperatorReport& entry : result.report.operators)
            if (entry.name == name) return entry;
        throw Error("no report for " + std::string(name));
    }
    float scale(std::string_view name) const { return value(name).params.scales[0]; }
    int zero_point(std::string_view name) const { return value(name).params.zero_points[0]; }
    DType dtype(std::string_view name) const { return value(name).params.dtype; }
    const ValueStats& seen(std::string_view name) const { return *stats.find(name); }
    const Tensor& weights(std::string_view name) const {
        return *graph().constant(node(name).input(1)->producer()->input(0));
    }
    std::vector<Tensor> run() const { return ref::run(graph(), inputs); }
    //! Largest difference to the original, relative to the largest number of an output.
    double error() const {
        const std::vector<Tensor> wanted = ref::run(original, inputs);
        const std::vector<Tensor> found = run();
        double worst = 0;
        for (size_t i = 0; i < wanted.size(); ++i) {
            double largest = 1e-6, difference = 0;
            for (int64_t j = 0; j < wanted[i].size(); ++j) {
                const auto at = static_cast<size_t>(j);
                largest = std::max(largest, std::fabs(wanted[i].to_doubles()[at]));
                difference =
                    std::max(difference, std::fabs(wanted[i].to_doubles()[at] - found[i].to_doubles()[at]));
            }
            worst = std::max(worst, difference / largest);
        }
        return worst;
    }
    void expect_close(double tolerance) const {
        verify(graph());
        EXPECT_LT(error(), tolerance) << print(graph());
    }
};

//! Builds a network piece by piece; every operator's result is called "<name>/out".
class Net {
  public:
    Graph& graph() { return graph_; }

    Value* input(const Shape& shape, const std::string& name = "x") {
        return graph_.add_input(name, {DType::f32, to_dims(shape)});
    }
    Value* add(std::string_view op, std::vector<Value*> inputs, Attributes attributes,
               const std::string& name, std::string_view domain = {}) {
        Value* y = graph_.add_value(name + "/out");
        graph_.add_node(op, std::move(inputs), {y}, std::move(attributes), name, domain);
        infer_types(graph_);
        return y;
    }
    Value* conv(Value* x, int64_t outputs, const std::string& name, float size = 1.0F, int64_t group = 1) {
        const int64_t inputs = (*x->type.shape)[1].value / group;
        Attributes attributes;
        attributes.set("group", group);
        return add("Conv",
                   {x, weights(graph_, {outputs, inputs, 1, 1}, ++seed_, -size, size),
                    weights(graph_, {outputs}, ++seed_, -0.1F * size, 0.1F * size)},
                   std::move(attributes), name, kKilterDomain);
    }
    Value* relu_conv(Value* x, int64_t outputs, const std::string& name, float size = 1.0F) {
        Value* y = conv(x, outputs, name, size);
        append_post_op(graph_, *y->producer(), "relu");
        return y;
    }
    Value* grouped(Value* x, int64_t outputs, int64_t group, const std::string& name) {
        return conv(x, outputs, name, 1.0F, group);
    }
    Value* matmul(Value* x, int64_t inputs, int64_t outputs, const std::string& name) {
        return add("MatMul",
                   {x, weights(graph_, {inputs, outputs}, ++seed_), weights(graph_, {outputs}, ++seed_)}, {},
                   name, kKilterDomain);
    }
    Value* relu_matmul(Value* x, int64_t inputs, int64_t outputs, const std::string& name) {
        Value* y = matmul(x, inputs, outputs, name);
        append_post_op(graph_, *y->producer(), "relu");
        return y;
    }
    Value* layer_norm(Value* x, int64_t size, const std::string& name) {
        return add("LayerNormalization",
                   {x, weights(graph_, {size}, ++seed_, 0.5F, 1.5F), weights(graph_, {size}, ++seed_)},
                   attribute("axis", int64_t{-1}), name);
    }
    void output(Value* value) { graph_.add_output(value); }

    Quantized quantize(const QuantizeOptions& options = {}, std::vector<Tensor> inputs = {}) const {
        Quantized done{graph_.clone(), std::move(inputs), {}, {}};
        if (done.inputs.empty()) done.inputs = random_inputs(graph_);
        Model model;
        model.graph = graph_.clone();
        model.opsets = {{"", kCanonicalOpset}};
        if (options.target == Target::onnxruntime) split_residuals(model.graph);
        infer_types(model.graph);
        done.stats = observe(model.graph, done.inputs);
        done.result = kilter::quantize(std::move(model), done.stats, options);
        return done;
    }

  private:
    Graph graph_;
    unsigned seed_ = 100;
};

}  // namespace kilter::testing
