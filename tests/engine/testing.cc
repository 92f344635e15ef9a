#include "engine/testing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "engine/ref/executor.h"

namespace kilter::engine::testing {

Tensor random(DType dtype, const Shape& shape, unsigned seed, double low, double high) {
    std::mt19937 engine(seed);
    Tensor wide(DType::f64, shape);
    std::uniform_real_distribution<double> numbers(low, high);
    for (double& value : wide.as_mutable<double>()) {
        value = numbers(engine);
        if (dtype == DType::boolean) value = value < (low + high) / 2 ? 0 : 1;
        if (is_integer(dtype)) value = std::floor(value);
    }
    return wide.converted(dtype);
}

Tensor ints(const std::vector<int64_t>& values) {
    return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

std::vector<Shape> odd_shapes() {
    return {{1, 1, 1, 1}, {1, 3, 17, 33}, {2, 17, 3, 1}, {3, 33, 1, 17}, {2, 16, 5, 7}, {1, 5, 33, 65}};
}

OpTest::OpTest(std::string op, std::string domain) : op_(std::move(op)), domain_(std::move(domain)) {}

OpTest& OpTest::input(Tensor tensor) {
    operands_.push_back(graph_.add_input({}, ValueType::of(tensor)));
    given_.push_back(std::move(tensor));
    return *this;
}

OpTest& OpTest::constant(Tensor tensor) {
    operands_.push_back(graph_.add_constant(std::move(tensor)));
    return *this;
}

OpTest& OpTest::absent() {
    operands_.push_back(nullptr);
    return *this;
}

OpTest& OpTest::transposed(Tensor tensor) {
    // The first axis goes last in memory and is brought back by the view.
    const auto rank = static_cast<int64_t>(tensor.shape().size());
    std::vector<int64_t> order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), -1);
    order[0] = rank - 1;
    Shape stored(tensor.shape().begin() + 1, tensor.shape().end());
    stored.push_back(tensor.shape()[0]);
    given_.push_back(tensor.reshaped(stored));
    Value* value = graph_.add_input({}, ValueType::of(given_.back()));
    Attributes attributes;
    attributes.set("perm", order);
    operands_.push_back(graph_.add("Transpose", {value}, attributes));
    return *this;
}

OpTest& OpTest::sliced(Tensor tensor) {
    Shape larger = tensor.shape();
    for (int64_t& size : larger) size += 3;
    given_.push_back(random(tensor.dtype(), larger, 99));
    Value* value = graph_.add_input({}, ValueType::of(given_.back()));
    const size_t rank = larger.size();
    std::vector<int64_t> ends = tensor.shape();
    for (int64_t& end : ends) ++end;
    operands_.push_back(graph_.add("Slice", {value, graph_.add_constant(ints(std::vector<int64_t>(rank, 1))),
                                             graph_.add_constant(ints(ends))}));
    return *this;
}

OpTest& OpTest::convolved(Tensor tensor) {
    Value* value = graph_.add_input({}, ValueType::of(tensor));
    Shape weights(tensor.shape().size(), 1);
    weights[0] = weights[1] = tensor.shape()[1];
    given_.push_back(std::move(tensor));
    operands_.push_back(graph_.add("Conv", {value, graph_.add_constant(random(DType::f32, weights, 7))}));
    return *this;
}

OpTest& OpTest::attribute(std::string_view name, AttributeValue value) {
    attributes_.set(name, std::move(value));
    return *this;
}

OpTest& OpTest::outputs(size_t count) {
    outputs_ = count;
    return *this;
}

OpTest& OpTest::then(std::string_view op) {
    then_ = op;
    return *this;
}

OpTest& OpTest::tolerance(double value) {
    tolerance_ = value;
    return *this;
}

OpTest& OpTest::any_kernel() {
    fast_ = false;
    return *this;
}

Graph& OpTest::finished() {
    if (finished_) return graph_;
    finished_ = true;
    std::vector<Value*> results;
    for (size_t i = 0; i < outputs_; ++i) results.push_back(graph_.add_value());
    graph_.add_node(op_, operands_, results, attributes_, "tested", domain_);
    for (Value* value : results) graph_.add_output(then_.empty() ? value : graph_.add(then_, {value}));
    return graph_;
}

void OpTest::check() {
    Graph& graph = finished();
    const std::vector<Tensor> wanted = ref::run(graph, given_);
    for (const int threads : {1, 2}) {
        const ThreadScope scope(threads);
        EngineOptions options;
        options.threads = threads;
        Stage stage(graph.clone(), options, std::make_shared<WeightStore>());
        expect_close(stage.run(given_), wanted, tolerance_);
        expect_close(stage.run(given_), wanted, tolerance_);  // memory of the first run is used again
    }
    if (!fast_) return;
    for (const StepReport& step : steps()) {
        if (step.op != op_ && step.op != "reorder") continue;
        EXPECT_FALSE(step.kernel.starts_with("ref"))
            << step.op << " " << step.shape << " ran through " << step.kernel;
    }
}

std::vector<StepReport> OpTest::steps() {
    Stage stage(finished().clone(), {}, std::make_shared<WeightStore>());
    std::vector<StepReport> reports;
    stage.profile(given_, 1, reports);
    return reports;
}

void expect_close(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted, double tolerance) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].dtype(), wanted[i].dtype()) << "output " << i;
        ASSERT_EQ(found[i].shape(), wanted[i].shape()) << "output " << i;
        const std::vector<double> left = found[i].to_doubles();
        const std::vector<double> right = wanted[i].to_doubles();
        double largest = 0;
        for (const double value : right)
            if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
        const double limit = is_float(wanted[i].dtype()) ? tolerance * largest : 0.0;
        for (size_t at = 0; at < left.size(); ++at) {
            const bool same = left[at] == right[at] || (std::isnan(left[at]) && std::isnan(right[at]));
            ASSERT_TRUE(same || std::fabs(left[at] - right[at]) <= limit)
                << "output " << i << " " << to_string(found[i].shape()) << ", element " << at << ": "
                << left[at] << ", expected " << right[at];
        }
    }
}

}  // namespace kilter::engine::testing
