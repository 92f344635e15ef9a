#include "kilter/engine/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/convert.h"
#include "base/fail.h"
#include "engine/quantized_values.h"
#include "kilter/engine/observer.h"

namespace kilter {
namespace {

using engine::AffineMap;

struct Difference {
    double signal = 0, noise = 0, max_error = 0, max_signal = 0;

    void add(const std::vector<double>& a, const std::vector<double>& b) {
        for (size_t i = 0; i < a.size(); ++i) {
            const double error = a[i] - b[i];
            signal += a[i] * a[i];
            noise += error * error;
            max_error = std::max(max_error, std::fabs(error));
            max_signal = std::max(max_signal, std::fabs(a[i]));
        }
    }

    Drift drift(std::string name, std::string op) const {
        double snr = std::numeric_limits<double>::infinity();
        if (noise > 0) snr = signal > 0 ? 10 * std::log10(signal / noise) : -snr;
        return {std::move(name), std::move(op), snr, max_error, max_signal};
    }
};

// Quantization puts these behind the names of values: kilter's own, and ONNX Runtime's.
std::string_view without_suffix(std::string_view name) {
    for (const std::string_view mark : {"_quantized", "_dequantized", "_QuantizeLinear", "_DequantizeLinear"})
        if (const size_t position = name.rfind(mark); position != std::string_view::npos && position > 0)
            return name.substr(0, position);
    return name;
}

// Elements in row-major order, as real numbers.
std::vector<double> elements(const Observation& seen, AffineMap map) {
    std::vector<double> values(static_cast<size_t>(element_count(seen.shape)));
    Shape index(seen.shape.size(), 0);
    int64_t position = 0;
    for (double& value : values) {
        value = seen.data != nullptr
                    ? static_cast<double>(seen.data[position])
                    : static_cast<double>(map.scale) * (load_double(seen.dtype, seen.integers, position) -
                                                        static_cast<double>(map.zero_point));
        for (size_t axis = index.size(); axis-- > 0;) {
            position += seen.strides[axis];
            if (++index[axis] < seen.shape[axis]) break;
            position -= seen.strides[axis] * seen.shape[axis];
            index[axis] = 0;
        }
    }
    return values;
}

// What one run computed, by operator and by value.
class Recorder : public Observer {
  public:
    explicit Recorder(const Graph& graph) : maps_(engine::affine_maps(graph)) {
        for (const auto& node : graph.nodes())
            for (const Value* value : node->outputs())
                if (value != nullptr) by_name_.emplace(value->name(), value);
    }

    struct Result {
        const Node* node = nullptr;
        Shape shape;
        std::vector<double> values;
        bool repeated = false;  // seen more than once: slices of a batch
    };

    bool sees_integers() const override { return true; }

    void observe(const Observation& seen) override {
        if (seen.producer == nullptr) return;
        AffineMap map;
        if (seen.data == nullptr) {
            const auto value = by_name_.find(std::string(seen.name));
            const auto known = value == by_name_.end() ? maps_.end() : maps_.find(value->second);
            if (known == maps_.end()) return;
            map = known->second;
        }
        Result result{seen.producer, Shape(seen.shape.begin(), seen.shape.end()), elements(seen, map)};
        const std::scoped_lock lock(mutex_);
        const auto [found, fresh] = results_.try_emplace(std::string(seen.name), std::move(result));
        if (!fresh) found->second.repeated = true;
    }

    std::map<std::string, Result, std::less<>> take() { return std::exchange(results_, {}); }

  private:
    std::unordered_map<const Value*, AffineMap> maps_;
    std::unordered_map<std::string, const Value*> by_name_;
    std::mutex mutex_;
    std::map<std::string, Result, std::less<>> results_;
};

using Results = std::map<std::string, Recorder::Result, std::less<>>;

std::string operator_name(const Recorder::Result& result, const std::string& value) {
    return result.node->name.empty() ? value : result.node->name;
}

// Conversions are not what the model computes.
bool is_conversion(const Node& node) {
    return node.is("QuantizeLinear") || node.is("DequantizeLinear") || node.is("Cast") || node.is("Identity");
}

std::vector<size_t> positions(const std::vector<Port>& from, const std::vector<Port>& in,
                              std::string_view what) {
    std::vector<size_t> found;
    for (const Port& port : from) {
        const auto same = std::ranges::find(in, port.name, &Port::name);
        require(same != in.end(), "the second model has no {} '{}'", what, port.name);
        found.push_back(static_cast<size_t>(same - in.begin()));
    }
    require(from.size() == in.size(), "the first model has {} {}s, the second one {}", from.size(), what,
            in.size());
    return found;
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> operator_results(const Program& program,
                                                             const std::vector<Tensor>& inputs) {
    Recorder recorder(program.graph());
    program.run(inputs, recorder);
    const Results results = recorder.take();
    std::vector<std::pair<std::string, Tensor>> list;
    for (const auto& node : program.graph().nodes()) {
        if (is_conversion(*node)) continue;
        for (const Value* value : node->outputs()) {
            const auto found = value == nullptr ? results.end() : results.find(value->name());
            if (found == results.end() || found->second.repeated) continue;
            Tensor tensor(DType::f32, found->second.shape);
            std::ranges::transform(found->second.values, tensor.as_mutable<float>().begin(),
                                   [](double element) { return static_cast<float>(element); });
            list.emplace_back(operator_name(found->second, std::string(without_suffix(value->name()))),
                              std::move(tensor));
            break;  // the first result stands for the operator
        }
    }
    return list;
}

struct Comparison::State {
    const Program& a;
    const Program& b;
    std::vector<size_t> inputs, outputs;  // of the first model: where the second one has them
    Recorder record_a{a.graph()}, record_b{b.graph()};
    struct Entry {
        std::string op;
        Difference difference;
    };
    std::map<std::string, Entry> operators;
    std::vector<Difference> output_differences;

    // Results of the second run by the names under which the first one may know them.
    static std::map<std::string, const Recorder::Result*, std::less<>> candidates(const Results& results) {
        std::map<std::string, const Recorder::Result*, std::less<>> named;
        const auto offer = [&](const std::string& name, const Recorder::Result& result) {
            if (!name.empty()) named.emplace(name, &result);
        };
        for (const auto& [value, result] : results)
            if (!is_conversion(*result.node)) offer(value, result);
        for (const auto& [value, result] : results)
            if (!is_conversion(*result.node)) offer("operator " + result.node->name, result);
        for (const auto& [value, result] : results) offer(std::string(without_suffix(value)), result);
        return named;
    }

    void compare(const Results& first, const Results& second) {
        const auto named = candidates(second);
        for (const auto& [value, mine] : first) {
            if (is_conversion(*mine.node)) continue;
            const std::string name = operator_name(mine, value);
            for (const std::string& key :
                 {value, "operator " + mine.node->name, std::string(without_suffix(value))}) {
                const auto found = named.find(key);
                if (found == named.end() || found->second->shape != mine.shape) continue;
                if (mine.repeated || found->second->repeated) break;
                Entry& entry = operators[name];
                entry.op = found->second->node->op();
                entry.difference.add(mine.values, found->second->values);
                break;
            }
        }
    }
};

Comparison::Comparison(const Program& a, const Program& b)
    : state_(new State{a, b, positions(a.inputs(), b.inputs(), "input"),
                       positions(a.outputs(), b.outputs(), "output")}) {
    state_->output_differences.resize(a.outputs().size());
}

Comparison::~Comparison() = default;

void Comparison::add(const std::vector<Tensor>& inputs) {
    require(inputs.size() == state_->inputs.size(), "the models have {} inputs, found {} arrays",
            state_->inputs.size(), inputs.size());
    std::vector<Tensor> reordered(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) reordered[state_->inputs[i]] = inputs[i];
    const std::vector<Tensor> first = state_->a.run(inputs, state_->record_a);
    const std::vector<Tensor> second = state_->b.run(reordered, state_->record_b);
    state_->compare(state_->record_a.take(), state_->record_b.take());
    for (size_t i = 0; i < first.size(); ++i) {
        const Tensor& other = second[state_->outputs[i]];
        const std::string& name = state_->a.outputs()[i].name;
        require(first[i].shape() == other.shape(),
                "output '{}' has shape {} in the first model, {} in the second", name,
                to_string(first[i].shape()), to_string(other.shape()));
        if (first[i].dtype() != DType::string && other.dtype() != DType::string)
            state_->output_differences[i].add(first[i].to_doubles(), other.to_doubles());
    }
}

std::vector<Drift> Comparison::operators() const {
    std::vector<Drift> drifts;
    for (const auto& [name, entry] : state_->operators)
        drifts.push_back(entry.difference.drift(name, entry.op));
    std::ranges::stable_sort(drifts, std::less(), &Drift::snr_db);
    return drifts;
}

std::vector<Drift> Comparison::outputs() const {
    std::vector<Drift> drifts;
    for (size_t i = 0; i < state_->output_differences.size(); ++i)
        drifts.push_back(state_->output_differences[i].drift(state_->a.outputs()[i].name, ""));
    return drifts;
}

}  // namespace kilter
