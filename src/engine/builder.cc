#include "engine/builder.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unordered_set>

#include "base/fail.h"
#include "engine/native/copy.h"
#include "engine/ref_step.h"
#include "engine/strips.h"
#include "graph/extract.h"
#include "ops/broadcast.h"
#include "ops/movement.h"

namespace kilter::engine {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

std::multimap<Key, BuildFunction>& kernels() {
    static std::multimap<Key, BuildFunction> registered;
    return registered;
}

std::shared_ptr<void> allocate(size_t bytes) {
    const size_t rounded = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
    void* memory = std::aligned_alloc(64, rounded);
    require(memory != nullptr, "out of memory: cannot allocate {} MB for weights", bytes >> 20);
    return {memory, std::free};
}

// Two descriptors that lay out the same bytes the same way have the same key.
std::string describe(const dnnl::memory::desc& desc) {
    std::string text = fmt::format("{}:", static_cast<int>(desc.get_data_type()));
    for (const auto dim : desc.get_dims()) text += fmt::format("{},", dim);
    for (const auto dim : desc.get_padded_dims()) text += fmt::format("{},", dim);
    if (desc.get_format_kind() == dnnl::memory::format_kind::blocked) {
        for (const auto stride : desc.get_strides()) text += fmt::format("{},", stride);
        for (const auto block : desc.get_inner_blks()) text += fmt::format("b{},", block);
        for (const auto axis : desc.get_inner_idxs()) text += fmt::format("i{},", axis);
    } else {
        text += fmt::format("opaque{}", desc.get_size());
    }
    return text;
}

// What the programs of this process have packed and still use. Variants of one model, as a search over precisions compiles them
// by the hundred, differ in a few operators: the others find their weights here.
class LivingWeights {
  public:
    std::shared_ptr<const void> get(const Tensor& source, const std::string& key,
                                    const WeightStore::Make& make) {
        const Key place{source.raw(), key};
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = entries_.find(place); found != entries_.end())
                if (auto bytes = found->second.lock()) return bytes;
        }
        // The source lives as long as what was made from it, so that no other tensor gets its address.
        const std::shared_ptr<const void> made = make();
        const std::shared_ptr<const void> bytes(made.get(), [made, source](const void*) {});
        const std::lock_guard lock(mutex_);
        if (entries_.size() >= sweep_at_) {
            std::erase_if(entries_, [](const auto& entry) { return entry.second.expired(); });
            sweep_at_ = 2 * entries_.size() + kFewEntries;
        }
        entries_[place] = bytes;
        return bytes;
    }

  private:
    using Key = std::pair<const void*, std::string>;
    static constexpr size_t kFewEntries = 256;
    std::mutex mutex_;
    std::map<Key, std::weak_ptr<const void>> entries_;
    size_t sweep_at_ = kFewEntries;
};

LivingWeights& living_weights() {
    static LivingWeights weights;
    return weights;
}

class PrimitiveStep : public Step {
  public:
    PrimitiveStep(dnnl::primitive primitive, std::vector<Builder::Argument> arguments)
        : primitive_(std::move(primitive)), arguments_(std::move(arguments)) {}

    void bind(Execution& execution, size_t index) const override {
        Execution::Arguments& bound = execution.arguments[index];
        for (const auto& [id, array] : arguments_) {
            bound.memories.push_back(execution.memory(array));
            bound.raw.push_back({id, bound.memories.back().get()});
        }
    }

    void run(Execution& execution, size_t index) const override {
        const Execution::Arguments& bound = execution.arguments[index];
        const dnnl_status_t status = dnnl_primitive_execute(
            primitive_.get(), execution.stream.get(), static_cast<int>(bound.raw.size()), bound.raw.data());
        require(status == dnnl_success, "operator '{}' ({}, {}): oneDNN failed with status {}", name, op,
                kernel, static_cast<int>(status));
    }

  private:
    dnnl::primitive primitive_;
    std::vector<Builder::Argument> arguments_;
};

class NativeStep : public Step {
  public:
    explicit NativeStep(std::function<void(Execution&)> function) : function_(std::move(function)) {}
    void run(Execution& execution, size_t) const override { function_(execution); }

  private:
    std::function<void(Execution&)> function_;
};

class ObserveStep : public Step {
  public:
    ObserveStep(const Value& value, const Array& array, Shape strides)
        : value_(value), strides_(std::move(strides)) {
        op = kernel = "observe";
        name = value.name();
        reads = {array};
    }

    void run(Execution& execution, size_t) const override {
        const Array& array = reads.front();
        const void* data = execution.address(array);
        const bool real = array.dtype == DType::f32;
        if (!real && !execution.observer->sees_integers()) return;
        execution.observer->observe({value_.name(), value_.producer(),
                                     real ? static_cast<const float*>(data) : nullptr, array.shape, strides_,
                                     array.dtype, real ? nullptr : data});
    }

  private:
    const Value& value_;
    Shape strides_;
};

bool is_written(int argument) {
    switch (argument) {
        case DNNL_ARG_DST:  // also DST_0, DST_LAYER
        case DNNL_ARG_DST_1:
        case DNNL_ARG_DST_2:
        case DNNL_ARG_WORKSPACE:
            return true;
        default:
            return false;
    }
}

}  // namespace

std::shared_ptr<const void> WeightStore::get(const Tensor& source, const std::string& key, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = entries_.equal_range(source.raw());
    for (auto entry = begin; entry != end; ++entry)
        if (entry->second.key == key) return entry->second.bytes;
    std::shared_ptr<const void> bytes = living_weights().get(source, key, make);
    return entries_.emplace(source.raw(), Entry{source, key, std::move(bytes)})->second.bytes;
}

RegisterKernel::RegisterKernel(std::string_view op, BuildFunction build, std::string_view domain) {
    kernels().emplace(Key{domain, op}, build);
}

Builder::Builder(const Graph& graph, const Specialized& known, WeightStore& weights,
                 const EngineOptions& options)
    : graph_(graph), known_(known), weights_(weights), options_(options) {
    const auto limit = static_cast<size_t>(graph.value_limit());
    shapes_.resize(limit);
    forms_.resize(limit);
    last_reader_.resize(limit, -1);
    for (size_t i = 0; i < limit; ++i)
        if (known.types[i].is_static()) shapes_[i] = known.types[i].static_shape();
}

// The form a value has where it enters or leaves the plan.
Array Builder::border_array(int buffer, const Value* value) const {
    const bool swapped = borders_ == Borders::channels_last && shape(value).size() == 4;
    return {buffer,
            0,
            dtype(value),
            shape(value),
            swapped ? channels_last_desc(dtype(value), shape(value)) : dense_desc(dtype(value), shape(value)),
            !swapped};
}

Plan Builder::build(const std::vector<const Value*>& outputs, Borders borders, Observe observe) {
    borders_ = borders;
    for (size_t i = 0; i < known_.nodes.size(); ++i)
        for (const Value* value : values_read(*known_.nodes[i]))
            last_reader_[index(value)] = static_cast<int>(i);
    for (const Value* value : outputs) last_reader_[index(value)] = INT_MAX;

    // A chain runs where its last node stands; what it reads must live until then. Inside it no value exists as a whole.
    std::vector<StripChain> chains;
    if (borders == Borders::row_major && !options_.reference && observe == Observe::nothing)
        chains = find_strip_chains(graph_, known_, options_.threads);
    std::unordered_map<const Node*, const StripChain*> ends;
    std::unordered_set<const Node*> inside;
    for (const StripChain& chain : chains) {
        ends[chain.nodes.back()] = &chain;
        inside.insert(chain.nodes.begin(), chain.nodes.end() - 1);
        const auto place = std::ranges::find(known_.nodes, chain.nodes.back()) - known_.nodes.begin();
        for (const Node* node : chain.nodes)
            for (const Value* value : values_read(*node))
                last_reader_[index(value)] = std::max(last_reader_[index(value)], static_cast<int>(place));
    }

    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
        const Value* value = graph_.inputs()[i];
        Buffer buffer;
        buffer.kind = Buffer::Kind::input;
        buffer.slot = static_cast<int>(i);
        buffer.bytes = byte_count(dtype(value), element_count(shape(value)));
        const int id = add_buffer(buffer);
        plan_.input_buffers.push_back(id);
        register_form(value, border_array(id, value));
        if (observe == Observe::everything) add_observation(value);
    }
    for (const Node* node : known_.nodes) {
        if (const auto chain = ends.find(node); chain != ends.end()) {
            node_ = node;
            build_strips(*this, *chain->second);
        } else if (!inside.contains(node)) {
            build_node(*node);
        }
        if (observe != Observe::nothing)
            for (const Value* value : node->outputs())
                if (value != nullptr) add_observation(value);
        ++position_;
    }
    bind_outputs(outputs);
    plan_.arena_bytes = place_buffers(plan_.buffers);
    return std::move(plan_);
}

void Builder::build_node(const Node& node) {
    node_ = &node;
    const auto empty = [&](const Value* value) {
        return value != nullptr && std::ranges::find(shape(value), 0) != shape(value).end();
    };
    // oneDNN has no opinion on tensors without elements; the scalar kernels do.
    const bool fast = !options_.reference && std::ranges::none_of(node.inputs(), empty) &&
                      std::ranges::none_of(node.outputs(), empty);
    try {
        for (const Value* value : node.outputs())
            if (value != nullptr) require_reasonable_size(dtype(value), shape(value));
        if (fast) {
            const auto [begin, end] = kernels().equal_range(Key{node.domain(), node.op()});
            for (auto kernel = begin; kernel != end; ++kernel)
                if (kernel->second(*this, node)) return;
        }
    } catch (const dnnl::error& error) {
        fail("{}: oneDNN refused it: {}", kilter::describe(node), error.what());
    } catch (const Error& error) {
        throw error.in(kilter::describe(node));
    }
    build_reference(node);
}

// The step comes before those of the next node, so nothing has overwritten the value yet.
void Builder::add_observation(const Value* value) {
    const bool shown = dtype(value) == DType::f32 || dtype(value) == DType::u8 || dtype(value) == DType::i8;
    if (!shown || constant(value) != nullptr) return;
    Array array = any(value);
    const auto plain = [](const Array& form) {
        return !form.desc.is_zero() && form.desc.get_format_kind() == dnnl::memory::format_kind::blocked &&
               form.desc.get_inner_blks().empty();
    };
    if (!plain(array)) array = dense(value);
    Shape strides = plain(array) ? Shape(array.desc.get_strides()) : row_major_strides(array.shape);
    array.shape = shape(value);
    strides.resize(array.shape.size());  // oneDNN sees a scalar as one dimension
    add_step(std::make_unique<ObserveStep>(*value, array, std::move(strides)));
}

void Builder::build_reference(const Node& node) {
    std::vector<Array> inputs;
    std::vector<Array> outputs;
    for (const Value* value : node.inputs()) inputs.push_back(value == nullptr ? Array{} : dense(value));
    for (const Value* value : node.outputs())
        outputs.push_back(value == nullptr ? Array{} : dense_result(value));
    add_step(make_reference_step(node, std::move(inputs), std::move(outputs)));
}

const Tensor* Builder::constant(const Value* value) const {
    if (value == nullptr) return nullptr;
    const Tensor& tensor = known_.constants[index(value)];
    return tensor.empty() ? nullptr : &tensor;
}

int Builder::add_buffer(Buffer buffer) {
    plan_.buffers.push_back(std::move(buffer));
    buffer_life_.push_back(-1);
    return static_cast<int>(plan_.buffers.size()) - 1;
}

void Builder::register_form(const Value* value, const Array& array) {
    forms_[index(value)].push_back(array);
    int& life = buffer_life_[static_cast<size_t>(array.buffer)];
    life = std::max(life, last_reader_[index(value)]);
}

Array Builder::new_array(DType dtype, const Shape& shape, const dnnl::memory::desc& desc) {
    Buffer buffer;
    buffer.bytes = desc.is_zero() ? byte_count(dtype, element_count(shape)) : desc.get_size();
    const bool row_major = desc.is_zero() || is_row_major(desc);
    return {add_buffer(buffer), 0, dtype, shape, desc, row_major};
}

Array Builder::constant_array(const Tensor& tensor) {
    if (const auto found = constant_arrays_.find(tensor.raw()); found != constant_arrays_.end() &&
                                                                found->second.shape == tensor.shape() &&
                                                                found->second.dtype == tensor.dtype())
        return found->second;
    Buffer buffer;
    buffer.kind = Buffer::Kind::constant;
    buffer.bytes = tensor.bytes();
    // Kernels load vectors; a constant in a mapped file may start at any byte.
    if (reinterpret_cast<uintptr_t>(tensor.raw()) % 64 == 0 && tensor.bytes() > 0) {
        buffer.constant = std::shared_ptr<const void>(std::make_shared<Tensor>(tensor), tensor.raw());
    } else {
        buffer.constant = weights_.get(tensor, "plain", [&]() -> std::shared_ptr<const void> {
            std::shared_ptr<void> copy = allocate(tensor.bytes());
            if (tensor.bytes() > 0) std::memcpy(copy.get(), tensor.raw(), tensor.bytes());
            return copy;
        });
    }
    const Array array{add_buffer(buffer),
                      0,
                      tensor.dtype(),
                      tensor.shape(),
                      dense_desc(tensor.dtype(), tensor.shape()),
                      true};
    buffer_life_.back() = INT_MAX;
    constant_arrays_[tensor.raw()] = array;
    return array;
}

Array Builder::any(const Value* value) {
    std::vector<Array>& forms = forms_[index(value)];
    if (!forms.empty()) return forms.front();
    const Tensor* tensor = constant(value);
    require(tensor != nullptr, "internal error: value '{}' was not computed", value->name());
    const Array array = constant_array(*tensor);
    forms.push_back(array);
    return array;
}

Array Builder::dense(const Value* value) {
    const Array first = any(value);
    for (Array form : forms_[index(value)]) {
        if (!form.dense) continue;
        form.desc = dense_desc(form.dtype, form.shape);
        return form;
    }
    return as(value, dense_desc(first.dtype, first.shape));
}

bool Builder::has_form(const Value* value, const dnnl::memory::desc& desc) const {
    return std::ranges::any_of(forms_[index(value)],
                               [&](const Array& form) { return equivalent(form.desc, desc); });
}

Array Builder::as(const Value* value, const dnnl::memory::desc& desc) {
    const Array source = any(value);
    for (Array form : forms_[index(value)]) {
        if (!equivalent(form.desc, desc)) continue;
        form.desc = desc;
        return form;
    }
    if (const Tensor* tensor = constant(value)) {
        const Array array = packed(*tensor, dense_desc(tensor->dtype(), tensor->shape()), desc);
        register_form(value, array);
        return array;
    }
    Array target = new_array(source.dtype, source.shape, desc);
    // Prefer the row-major form as source when there are several: its reorders are the best optimised.
    Array from = source;
    for (const Array& form : forms_[index(value)])
        if (form.dense) from = form;
    add_reorder(from, target);
    register_form(value, target);
    return target;
}

Array Builder::packed(const Tensor& tensor, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                      std::string_view variant) {
    Buffer buffer;
    buffer.kind = Buffer::Kind::constant;
    buffer.bytes = to.get_size();
    buffer.constant = weights_.get(
        tensor, fmt::format("{}>{}{}", describe(from), describe(to), variant),
        [&]() -> std::shared_ptr<const void> {
            std::shared_ptr<void> bytes = allocate(to.get_size());
            std::shared_ptr<void> aligned;
            const void* data = tensor.raw();
            if (reinterpret_cast<uintptr_t>(data) % 64 != 0) {
                aligned = allocate(tensor.bytes());
                std::memcpy(aligned.get(), data, tensor.bytes());
                data = aligned.get();
            }
            dnnl::memory source(from, cpu(),
                                const_cast<void*>(data));  // NOLINT: a reorder only reads its source
            dnnl::memory target(to, cpu(), bytes.get());
            dnnl::stream stream(cpu());
            dnnl::reorder(source, target).execute(stream, source, target);
            stream.wait();
            return bytes;
        });
    const Array array{add_buffer(buffer), 0, tensor.dtype(), tensor.shape(), to, false};
    buffer_life_.back() = INT_MAX;
    return array;
}

Array Builder::derived(const Tensor& tensor, const std::string& key, DType dtype, Shape shape,
                       const std::function<void(void*)>& make) {
    Buffer buffer;
    buffer.kind = Buffer::Kind::constant;
    buffer.bytes = byte_count(dtype, element_count(shape));
    buffer.constant = weights_.get(tensor, "derived:" + key, [&]() -> std::shared_ptr<const void> {
        std::shared_ptr<void> bytes = allocate(buffer.bytes);
        make(bytes.get());
        return bytes;
    });
    const Array array{add_buffer(buffer), 0, dtype, shape, dense_desc(dtype, shape), true};
    buffer_life_.back() = INT_MAX;
    return array;
}

Array Builder::lasting_scratch(size_t bytes) {
    if (lasting_scratch_ < 0) {
        lasting_scratch_ = add_buffer({});
        plan_.buffers.back().first_step = 0;
        plan_.buffers.back().last_step = INT_MAX;
    }
    Buffer& buffer = plan_.buffers[static_cast<size_t>(lasting_scratch_)];
    buffer.bytes = std::max(buffer.bytes, bytes);
    Array array;
    array.buffer = lasting_scratch_;
    array.dtype = DType::u8;
    array.shape = {static_cast<int64_t>(bytes)};
    return array;
}

Array Builder::result(const Value* value, const dnnl::memory::desc& desc) {
    const Array array = new_array(dtype(value), shape(value), desc);
    register_form(value, array);
    return array;
}

Array Builder::dense_result(const Value* value) {
    return result(value, dense_desc(dtype(value), shape(value)));
}

void Builder::alias(const Value* value, Array array) {
    array.dtype = dtype(value);
    array.shape = shape(value);
    array.dense = array.desc.is_zero() ? array.dense : is_row_major(array.desc);
    register_form(value, array);
}

bool Builder::dies_here(const Array& array) const {
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(array.buffer)];
    return buffer.kind == Buffer::Kind::arena && buffer_life_[static_cast<size_t>(array.buffer)] <= position_;
}

bool Builder::shares_buffer(const Value* value, const Array& array) const {
    return std::ranges::any_of(forms_[index(value)],
                               [&](const Array& form) { return form.buffer == array.buffer; });
}

Array Builder::scratch(size_t bytes) {
    Buffer buffer;
    buffer.bytes = bytes;
    Array array;
    array.buffer = add_buffer(buffer);
    array.dtype = DType::u8;
    array.shape = {static_cast<int64_t>(bytes)};
    array.desc = dense_desc(DType::u8, array.shape);
    return array;
}

Array Builder::temporary(DType dtype, const Shape& shape, const dnnl::memory::desc& desc) {
    return new_array(dtype, shape, desc);
}

void Builder::add_step(std::unique_ptr<Step> step) {
    const int number = static_cast<int>(plan_.steps.size());
    for (const std::vector<Array>* arrays : {&step->reads, &step->writes}) {
        for (const Array& array : *arrays) {
            if (!array.valid()) continue;
            Buffer& buffer = plan_.buffers[static_cast<size_t>(array.buffer)];
            if (buffer.first_step < 0) buffer.first_step = number;
            buffer.last_step = number;
        }
    }
    if (step->name.empty())
        step->name =
            node_->name.empty() && node_->output(0) != nullptr ? node_->output(0)->name() : node_->name;
    if (step->op.empty()) step->op = node_->op();
    if (step->shape.empty() && !step->writes.empty()) step->shape = to_string(step->writes.front().shape);
    plan_.steps.push_back(std::move(step));
}

void Builder::add_primitive(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& pd,
                            std::vector<Argument> arguments, std::string_view op) {
    const dnnl::memory::desc scratchpad = pd.scratchpad_desc();
    std::vector<Array> reads;
    std::vector<Array> writes;
    for (const auto& [id, array] : arguments) (is_written(id) ? writes : reads).push_back(array);
    if (scratchpad.get_size() > 0) {
        Array array = scratch(scratchpad.get_size());
        array.desc = scratchpad;
        arguments.emplace_back(DNNL_ARG_SCRATCHPAD, array);
        writes.push_back(array);
    }
    auto step = std::make_unique<PrimitiveStep>(primitive, std::move(arguments));
    step->reads = std::move(reads);
    step->writes = std::move(writes);
    step->kernel = pd.impl_info_str();
    step->op = op;
    add_step(std::move(step));
}

void Builder::add_native(std::string kernel, std::vector<Array> reads, std::vector<Array> writes,
                         std::function<void(Execution&)> run, std::string_view op) {
    auto step = std::make_unique<NativeStep>(std::move(run));
    step->kernel = std::move(kernel);
    step->reads = std::move(reads);
    step->writes = std::move(writes);
    step->op = op;
    add_step(std::move(step));
}

void Builder::add_reorder(const Array& from, const Array& to) {
    if (add_tiled_reorder(*this, from, to)) return;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc pd(cpu(), from.desc, cpu(), to.desc, attributes);
    add_primitive(dnnl::reorder(pd), pd, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, "reorder");
}

void Builder::bind_outputs(const std::vector<const Value*>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
        const Value* value = outputs[i];
        node_ = value->producer() != nullptr ? value->producer() : node_;
        Array array = borders_ == Borders::row_major ? dense(value) : as(value, border_array(-1, value).desc);
        Buffer& held = plan_.buffers[static_cast<size_t>(array.buffer)];
        const size_t bytes = byte_count(array.dtype, element_count(array.shape));
        int id = array.buffer;
        if (held.kind == Buffer::Kind::arena && array.offset == 0 && held.bytes == bytes) {
            held.kind = Buffer::Kind::output;
            held.slot = static_cast<int>(i);
        } else {
            Buffer buffer;
            buffer.kind = Buffer::Kind::output;
            buffer.slot = static_cast<int>(i);
            buffer.bytes = bytes;
            id = add_buffer(buffer);
            Array target = array;
            target.buffer = id;
            target.offset = 0;
            auto step = std::make_unique<NativeStep>([array, target, bytes](Execution& execution) {
                if (bytes > 0) std::memcpy(execution.address(target), execution.address(array), bytes);
            });
            step->kernel = "copy";
            step->op = "copy";
            step->name = value->name();
            step->reads = {array};
            step->writes = {target};
            add_step(std::move(step));
        }
        plan_.output_buffers.push_back(id);
        plan_.output_types.push_back(known_.types[index(value)]);
    }
}

}  // namespace kilter::engine
