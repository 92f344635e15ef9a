#include "kilter/deploy/tensorflow_host.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "deploy/tensorflow/quantized_weights.h"
#include "formats/tensorflow/tf_graph.h"
#include "tuning/hash.h"

namespace kilter::tensorflow {
namespace graph_host {
namespace {

bool is_convolution(std::string_view op) { return op == "Conv2D" || op == "DepthwiseConv2dNative"; }

// Mean square of the values, and of what rounding them to 256 steps of `range` and clipping them does.
struct Squares {
    double signal = 0, noise = 0;
};

Squares squares(const Histogram& histogram, const Range& range) {
    const double step = (static_cast<double>(range.max) - range.min) / 255;
    Squares sums;
    const auto add = [&](const std::vector<int64_t>& counts, double sign) {
        for (size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] == 0) continue;
            const double value = sign * (static_cast<double>(i) + 0.5) * histogram.width();
            const double clipped = value - std::clamp(value, double{range.min}, double{range.max});
            sums.signal += static_cast<double>(counts[i]) * value * value;
            sums.noise += static_cast<double>(counts[i]) * (clipped * clipped + step * step / 12);
        }
    };
    add(histogram.negative(), -1);
    add(histogram.positive(), 1);
    return sums;
}

double share(double noise, double signal) { return signal > 0 ? noise / signal : 0; }

double weight_noise(const TfGraph& graph, const TfNode& product, const WeightChoice& choice) {
    const QuantizedWeights weights =
        quantize_weights(graph, product, choice.granularity == Granularity::per_channel, choice.bits);
    const double steps_of_bits = 127.0 / ((1 << (choice.bits - 1)) - 1);
    Squares sums;
    const auto bytes = weights.bytes.as<int8_t>();
    for (size_t i = 0; i < bytes.size(); ++i) {
        const double scale = weights.limits[i % weights.limits.size()] / 127;
        const double step = scale * steps_of_bits;
        sums.signal += scale * scale * bytes[i] * bytes[i];
        sums.noise += step * step / 12;
    }
    return share(sums.noise, sums.signal);
}

// Of all samples that were observed.
double multiplications(const TfGraph& graph, const TfNode& product, int64_t elements_read) {
    const Tensor weights = *constant_of(graph, product.inputs[1]);
    const auto size = static_cast<double>(weights.size());
    if (!is_convolution(product.op)) {
        const bool turned = product.attributes.get_bool("transpose_b");
        return static_cast<double>(elements_read) * static_cast<double>(weights.dim(turned ? 0 : 1));
    }
    double strides = 1;
    for (const int64_t stride : product.attributes.get_ints("strides"))
        strides *= static_cast<double>(stride);
    return static_cast<double>(elements_read) / static_cast<double>(weights.dim(2)) * size / strides;
}

double constant_bytes(const TfGraph& graph) {
    double bytes = 0;
    for (const auto& node : graph.nodes())
        if (node->op == "Const")
            if (const std::optional<Tensor> value = constant_of(graph, TfInput(node->name)))
                if (value->dtype() != DType::string) bytes += static_cast<double>(value->bytes());
    return bytes;
}

}  // namespace
}  // namespace graph_host

using namespace graph_host;

double operator_noise(const TfGraph& graph, const std::string& product, const ValueStats& read,
                      const OperatorPlan& plan) {
    const Range range = choose_range(
        read, {.algorithm = plan.activation.algorithm, .percentile = plan.activation.percentile});
    const Squares activation = squares(read.histogram, range);
    return share(activation.noise, activation.signal) +
           weight_noise(graph, *graph.find(product), plan.weights);
}

GraphHost::GraphHost(QuantizableGraph graph, Stats stats, Run run)
    : graph_(std::move(graph)), fp32_(graph_.fp32()), stats_(std::move(stats)), run_(std::move(run)) {
    bytes_ = constant_bytes(fp32_.graph());
    for (const QuantizableOperator& entry : graph_.operators())
        if (is_convolution(entry.op) || entry.op == "MatMul") products_.push_back(entry);
    for (const QuantizableOperator& entry : products_)
        require(stats_.find(entry.tensors.front()) != nullptr,
                "'{}', which operator '{}' reads, was never seen while the graph ran", entry.tensors.front(),
                entry.name);
}

std::vector<HostedOperator> GraphHost::operators() {
    std::vector<HostedOperator> operators;
    for (const QuantizableOperator& entry : products_) {
        const TfNode& product = *fp32_.graph().find(entry.name);
        HostedOperator& made = operators.emplace_back();
        made.plan.name = entry.name;
        made.plan.op = is_convolution(entry.op) ? "Conv" : "MatMul";
        made.plan.origins = entry.fused;
        made.multiplications =
            multiplications(fp32_.graph(), product, stats_.find(entry.tensors.front())->count);
        made.weight_bytes = static_cast<double>(constant_of(fp32_.graph(), product.inputs[1])->bytes());
    }
    return operators;
}

IntegerGraph GraphHost::write(const Plan& plan) const { return graph_.write(graph_.choices(plan), stats_); }

HostedRun GraphHost::run(const Plan* plan) {
    if (plan == nullptr) return run_(nullptr);
    const GraphDef graph = write(*plan).graph;
    return run_(&graph);
}

std::vector<double> GraphHost::noise(const Plan& plan) {
    std::vector<double> noise;
    for (size_t i = 0; i < products_.size(); ++i) {
        const OperatorPlan& choice = plan.operators.at(i);
        if (choice.precision != Precision::int8) {
            noise.push_back(0);
            continue;
        }
        Plan alone;
        alone.operators = {choice};
        const auto [place, added] = known_.try_emplace({choice.name, alone.hash()}, 0.0);
        if (added)
            place->second = operator_noise(fp32_.graph(), choice.name,
                                           *stats_.find(products_[i].tensors.front()), choice);
        noise.push_back(place->second);
    }
    return noise;
}

void GraphHost::keep(const Plan& plan, const std::filesystem::path& workspace) {
    write(plan).graph.save(workspace / "best.pb");
}

uint64_t GraphHost::fingerprint() {
    Hash hash;
    hash.add(std::string_view(fp32_.bytes()));
    return hash.value();
}

uint64_t GraphHost::calibration_fingerprint() {
    // Threads of TensorFlow add up in any order: values need not be the same to the last bit in the next session.
    Hash hash;
    for (const auto& [name, value] : stats_.values) {
        hash.add(std::string_view(name));
        hash.add(static_cast<uint64_t>(value.count));
    }
    return hash.value();
}

}  // namespace kilter::tensorflow
