// Builder: turns the nodes of a specialized graph into the steps of a Plan. Kernels talk to it.
// It knows in which forms (row-major, blocked, strided view) every value exists and converts only when asked.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/plan.h"
#include "engine/specialize.h"

namespace kilter::engine {

//! Packed weights of a program, shared by all its plans. Thread-safe.
class WeightStore {
  public:
    using Make = std::function<std::shared_ptr<const void>()>;
    //! The bytes made from `source` under `key` (a description of the packing), made on first use.
    std::shared_ptr<const void> get(const Tensor& source, const std::string& key, const Make& make);

  private:
    struct Entry {
        Tensor source;  // keeps the address unique
        std::string key;
        std::shared_ptr<const void> bytes;
    };
    std::mutex mutex_;
    std::unordered_multimap<const void*, Entry> entries_;
};

class Builder;

//! Builds the step(s) of one node; returns false, having changed nothing, when it cannot.
using BuildFunction = bool (*)(Builder&, const Node&);

struct RegisterKernel {
    RegisterKernel(std::string_view op, BuildFunction build, std::string_view domain = {});
};

#define KILTER_KERNEL_JOIN2(a, b) a##b
#define KILTER_KERNEL_JOIN(a, b) KILTER_KERNEL_JOIN2(a, b)
#define KILTER_KERNEL(...)                                                             \
    static const ::kilter::engine::RegisterKernel KILTER_KERNEL_JOIN(register_kernel_, \
                                                                     __COUNTER__)(__VA_ARGS__)

//! In which form a plan takes its inputs and leaves its outputs of rank 4.
enum class Borders { row_major, channels_last };

class Builder {
  public:
    Builder(const Graph& graph, const Specialized& known, WeightStore& weights, const EngineOptions& options);
    enum class Observe { nothing, results, everything };  // everything: inputs of the graph, too
    //! With `observe`, steps that show float32 values to the observer of the run follow the steps that compute them.
    Plan build(const std::vector<const Value*>& outputs, Borders borders = Borders::row_major,
               Observe observe = Observe::nothing);

    // What is known.
    DType dtype(const Value* value) const { return known_.types[index(value)].dtype; }
    const Shape& shape(const Value* value) const { return shapes_[index(value)]; }
    const Tensor* constant(const Value* value) const;  // null when null or computed at run time
    const EngineOptions& options() const { return options_; }
    const Specialized& known() const { return known_; }
    WeightStore& weights() { return weights_; }

    // Inputs of a kernel.
    Array any(const Value* value);    // in whatever form it exists
    Array dense(const Value* value);  // row-major
    Array as(const Value* value, const dnnl::memory::desc& desc);
    bool has_form(const Value* value, const dnnl::memory::desc& desc) const;
    //! `tensor`, seen as `from`, packed as `to`. `variant` tells apart what oneDNN stores beside the weights: descriptors do
    //! not show whether that is for signed sources, for zero points or for both.
    Array packed(const Tensor& tensor, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                 std::string_view variant = {});
    //! Bytes derived from `tensor` by `make`, e.g. a transformed copy; `key` says which derivation it is.
    Array derived(const Tensor& tensor, const std::string& key, DType dtype, Shape shape,
                  const std::function<void(void*)>& make);
    Array constant_array(const Tensor& tensor);

    // Outputs of a kernel.
    Array result(const Value* value, const dnnl::memory::desc& desc);
    Array dense_result(const Value* value);
    void alias(const Value* value, Array array);  // `value` is a view of memory that exists
    //! May the current node overwrite this array? True when nothing after it reads its buffer.
    bool dies_here(const Array& array) const;
    //! Does any form of `value` live in the buffer of `array`?
    bool shares_buffer(const Value* value, const Array& array) const;
    Array scratch(size_t bytes);
    //! Scratch memory that nothing else in the plan uses; all steps that ask share it.
    Array lasting_scratch(size_t bytes);
    //! An array that no value names, for multi-step kernels.
    Array temporary(DType dtype, const Shape& shape, const dnnl::memory::desc& desc);

    // Steps.
    using Argument = std::pair<int, Array>;
    //! A oneDNN primitive; the scratchpad is added. `written` are the arguments it writes.
    void add_primitive(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& pd,
                       std::vector<Argument> arguments, std::string_view op = {});
    void add_native(std::string kernel, std::vector<Array> reads, std::vector<Array> writes,
                    std::function<void(Execution&)> run, std::string_view op = {});
    void add_reorder(const Array& from, const Array& to);
    void add_step(std::unique_ptr<Step> step);
    const Node& node() const { return *node_; }

  private:
    static size_t index(const Value* value) { return static_cast<size_t>(value->id()); }
    int add_buffer(Buffer buffer);
    void register_form(const Value* value, const Array& array);
    Array border_array(int buffer, const Value* value) const;
    void build_node(const Node& node);
    void add_observation(const Value* value);
    void build_reference(const Node& node);
    void bind_outputs(const std::vector<const Value*>& outputs);
    Array new_array(DType dtype, const Shape& shape, const dnnl::memory::desc& desc);

    const Graph& graph_;
    const Specialized& known_;
    WeightStore& weights_;
    const EngineOptions& options_;
    Plan plan_;
    Borders borders_ = Borders::row_major;
    int lasting_scratch_ = -1;  // buffer
    const Node* node_ = nullptr;
    int position_ = 0;
    std::vector<Shape> shapes_;
    std::vector<std::vector<Array>> forms_;  // by value id
    std::vector<int> last_reader_;           // by value id: position of the last node that reads it
    std::vector<int> buffer_life_;           // by buffer: position until which it must stay
    std::unordered_map<const void*, Array> constant_arrays_;
};

}  // namespace kilter::engine
