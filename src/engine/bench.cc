#include "kilter/engine/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "base/convert.h"
#include "base/fail.h"

namespace kilter {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmUp = 2;  // the first run plans and packs weights, the second finds warm caches

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sizes of symbolic dimensions: those the options name, and the batch.
std::map<std::string, int64_t> symbol_sizes(const std::vector<Port>& inputs, const ShapeOptions& options) {
    std::map<std::string, int64_t> sizes;
    for (const Port& port : inputs) {
        if (!port.type.shape) continue;
        for (const Dim& dim : *port.type.shape) {
            const auto given = options.shapes.find(dim.symbol);
            if (dim.known() || dim.symbol.empty() || given == options.shapes.end()) continue;
            require(given->second.size() == 1, "'{}' is one dimension, but its size is given as {}",
                    dim.symbol, to_string(given->second));
            sizes[dim.symbol] = given->second[0];
        }
    }
    for (const Port& port : inputs) {
        if (!port.type.shape || port.type.shape->empty()) continue;
        const Dim& first = port.type.shape->front();
        if (!first.known() && !first.symbol.empty())
            sizes.try_emplace(first.symbol, std::max<int64_t>(options.batch, 1));
    }
    return sizes;
}

void check_names(const std::vector<Port>& inputs, const ShapeOptions& options) {
    std::set<std::string> names;
    for (const Port& port : inputs) {
        names.insert(port.name);
        if (port.type.shape)
            for (const Dim& dim : *port.type.shape)
                if (!dim.known() && !dim.symbol.empty()) names.insert(dim.symbol);
    }
    for (const auto& [name, shape] : options.shapes)
        if (!names.contains(name))
            throw Error(fmt::format("no input or dimension is called '{}'", name),
                        fmt::format("the model has {}", fmt::join(names, ", ")));
}

Shape checked_shape(const Port& port, const Shape& shape) {
    if (!port.type.shape) return shape;
    const Dims& declared = *port.type.shape;
    bool fits = declared.size() == shape.size();
    for (size_t axis = 0; fits && axis < shape.size(); ++axis)
        fits = !declared[axis].known() || declared[axis].value == shape[axis];
    require(fits, "input '{}' has shape {}, {} does not fit it", port.name, to_string(declared),
            to_string(shape));
    return shape;
}

Shape resolve(const Port& port, const ShapeOptions& options, const std::map<std::string, int64_t>& sizes) {
    if (const auto given = options.shapes.find(port.name); given != options.shapes.end())
        return checked_shape(port, given->second);
    const auto open = [&](const std::string& what) {
        throw Error(fmt::format("input '{}' has {}", port.name, what),
                    fmt::format("give its shape, for example --shape {}=1x128", port.name));
    };
    if (!port.type.shape) open("a shape that the model leaves open");
    Shape shape;
    for (const Dim& dim : *port.type.shape) {
        if (dim.known()) {
            shape.push_back(dim.value);
        } else if (const auto size = sizes.find(dim.symbol); size != sizes.end()) {
            shape.push_back(size->second);
        } else if (shape.empty()) {
            shape.push_back(std::max<int64_t>(options.batch, 1));
        } else {
            open(fmt::format("the open dimension '{}' in its shape {}", to_string(dim),
                             to_string(*port.type.shape)));
        }
    }
    if (options.batch > 0 && !shape.empty() && port.type.shape->front().known())
        require(shape[0] == options.batch, "input '{}' has the fixed shape {}, batch {} does not fit it",
                port.name, to_string(shape), options.batch);
    return shape;
}

}  // namespace

std::vector<Shape> resolve_shapes(const std::vector<Port>& inputs, const ShapeOptions& options) {
    check_names(inputs, options);
    const std::map<std::string, int64_t> sizes = symbol_sizes(inputs, options);
    std::vector<Shape> shapes;
    for (const Port& port : inputs) shapes.push_back(resolve(port, options, sizes));
    return shapes;
}

std::vector<Tensor> made_up_inputs(const std::vector<Port>& inputs, const std::vector<Shape>& shapes) {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
        const DType dtype = inputs[i].type.dtype;
        require(dtype != DType::string && dtype != DType::undefined, "input '{}' ({}) cannot be made up",
                inputs[i].name, to_string(inputs[i].type));
        Tensor tensor(dtype, shapes[i]);
        if (bits(dtype) < 8) tensor = Tensor::filled(dtype, shapes[i], 0);
        std::minstd_rand random(static_cast<unsigned>(i + 1));
        std::uniform_real_distribution<double> uniform(-1, 1);
        for (int64_t k = 0; k < tensor.size(); ++k) {
            const double value =
                is_float(dtype) ? uniform(random) : static_cast<double>((random() >> 8) & 1U);
            store_double(dtype, tensor.raw_mutable(), k, value);
        }
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

double BenchResult::percentile(double p) const {
    if (milliseconds.empty()) return 0;
    const double position = p / 100 * static_cast<double>(milliseconds.size() - 1);
    const auto below = static_cast<size_t>(position);
    const size_t above = std::min(below + 1, milliseconds.size() - 1);
    return std::lerp(milliseconds[below], milliseconds[above], position - static_cast<double>(below));
}

BenchResult bench(const Program& program, const std::vector<Tensor>& inputs, const BenchOptions& options) {
    require(options.instances >= 1, "instances must be at least 1, not {}", options.instances);
    const auto instances = static_cast<size_t>(options.instances);
    std::vector<std::vector<double>> times(instances);
    std::exception_ptr failure;
    std::mutex failure_mutex;
    std::atomic<bool> failed{false};
    Clock::time_point start;
    std::barrier together(options.instances, [&]() noexcept { start = Clock::now(); });

    const auto run = [&] {
        try {
            program.run(inputs);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            failure = std::current_exception();
            failed = true;
        }
    };
    const auto measure = [&](size_t instance) {
        std::vector<double>& mine = times[instance];
        for (int i = 0; i < kWarmUp && !failed; ++i) run();
        together.arrive_and_wait();
        while (!failed) {
            const double done = options.iterations > 0 ? static_cast<double>(mine.size()) /
                                                             static_cast<double>(options.iterations)
                                                       : seconds_since(start) / options.seconds;
            if (instance == 0 && options.progress) options.progress(std::min(done, 1.0));
            if (done >= 1 && !mine.empty()) break;
            const Clock::time_point before = Clock::now();
            run();
            mine.push_back(seconds_since(before) * 1e3);
        }
    };
    std::vector<std::jthread> others;
    for (size_t i = 1; i < instances; ++i) others.emplace_back(measure, i);
    measure(0);
    others.clear();
    const double elapsed = seconds_since(start);
    if (failure) std::rethrow_exception(failure);

    BenchResult result;
    result.seconds = elapsed;
    for (const std::vector<double>& part : times)
        result.milliseconds.insert(result.milliseconds.end(), part.begin(), part.end());
    std::ranges::sort(result.milliseconds);
    return result;
}

}  // namespace kilter
