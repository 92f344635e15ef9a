// Statistics of tensors that somebody else computed: the collector of kilter's own calibration, with each tensor as an input.
#include "base/fail.h"
#include "calibration/collector.h"
#include "kilter/deploy/tensorflow.h"

namespace kilter::tensorflow {
namespace {

std::vector<int64_t> dense_strides(const Shape& shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    return strides;
}

}  // namespace

Observations::Observations(const std::vector<std::string>& tensors) {
    Graph graph;
    for (const std::string& tensor : tensors) {
        graph.add_input(tensor, {})->type.dtype = DType::f32;
        batches_[tensor] = 0;
    }
    collector_ = std::make_unique<Collector>(graph);
}

Observations::~Observations() = default;
Observations::Observations(Observations&&) noexcept = default;
Observations& Observations::operator=(Observations&&) noexcept = default;

void Observations::add(const std::string& tensor, const Tensor& values) {
    const auto known = batches_.find(tensor);
    require(known != batches_.end(), "tensor '{}' is not to be observed", tensor);
    require(values.dtype() == DType::f32, "tensor '{}' holds {}, not f32", tensor, name(values.dtype()));
    const std::vector<int64_t> strides = dense_strides(values.shape());
    collector_->observe(
        {.name = tensor, .data = values.as<float>().data(), .shape = values.shape(), .strides = strides});
    ++known->second;
}

Stats Observations::stats() const {
    Stats stats = collector_->stats();
    std::erase_if(stats.values, [](const auto& entry) { return entry.second.count == 0; });
    for (const auto& [tensor, batches] : batches_) stats.samples = std::max(stats.samples, batches);
    return stats;
}

}  // namespace kilter::tensorflow
