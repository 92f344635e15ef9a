// Plan: what one run does for one set of input shapes. A list of steps over numbered buffers, immutable once built.
// Execution: the memory of one run in progress. A plan may have many, one per concurrent run.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/dnnl/dnnl.h"
#include "kilter/engine/observer.h"
#include "kilter/engine/program.h"

namespace kilter::engine {

struct Buffer {
    enum class Kind { arena, constant, input, output };
    Kind kind = Kind::arena;
    size_t bytes = 0;
    size_t offset = 0;                     // in the arena
    int slot = -1;                         // which input or output
    std::shared_ptr<const void> constant;  // bytes of a constant
    int first_step = -1, last_step = -1;   // life in the arena
};

//! A typed array inside a buffer. `desc` describes it to oneDNN; it is empty for element types oneDNN does not know,
//! which are always dense and row-major. The desc may be blocked or strided (a transposed view).
struct Array {
    int buffer = -1;
    size_t offset = 0;  // bytes
    DType dtype = DType::undefined;
    Shape shape;
    dnnl::memory::desc desc;
    bool dense = true;  // row-major without gaps
    bool valid() const { return buffer >= 0; }
};

class Execution;

class Step {
  public:
    virtual ~Step() = default;
    //! Called once per Execution, before the first run; may prepare state there.
    virtual void bind(Execution&, size_t) const {}
    virtual void run(Execution& execution, size_t index) const = 0;

    std::string name, op, kernel, shape;
    std::vector<Array> reads, writes;  // for lifetimes
};

struct Plan {
    std::vector<Buffer> buffers;
    std::vector<std::unique_ptr<Step>> steps;
    size_t arena_bytes = 0;
    std::vector<int> input_buffers;   // per graph input; -1 when unused
    std::vector<int> output_buffers;  // per graph output
    std::vector<ValueType> output_types;
};

//! Decides where arena buffers live: large ones first, each at the lowest place free during its life.
size_t place_buffers(std::vector<Buffer>& buffers);

class Execution {
  public:
    //! `arena`: memory for the plan's arena that the caller owns; without it the execution has its own.
    explicit Execution(const Plan& plan, char* arena = nullptr);
    void set_external(int buffer, void* data);  // an input or output of this run
    void run();
    std::vector<double> run_timed();  // milliseconds per step

    char* address(const Array& array) const {
        return bases_[static_cast<size_t>(array.buffer)] + array.offset;
    }
    //! A oneDNN memory object for `array` that follows the address of its buffer.
    dnnl::memory memory(const Array& array);
    Tensor tensor(const Array& array) const;  // view; the array must be dense

    //! Arguments of a oneDNN primitive, bound once.
    struct Arguments {
        std::vector<dnnl::memory> memories;  // own what `raw` points to
        std::vector<dnnl_exec_arg_t> raw;
    };
    std::vector<Arguments> arguments;           // per step
    std::vector<std::shared_ptr<void>> states;  // per step: what its bind() prepared
    dnnl::stream stream;
    Observer* observer = nullptr;  // of the run in progress; there when the plan has steps that observe

  private:
    const Plan& plan_;
    std::shared_ptr<void> arena_;
    std::vector<char*> bases_;
    struct Follower {
        dnnl::memory memory;
        size_t offset;
    };
    std::unordered_map<int, std::vector<Follower>> followers_;
};

}  // namespace kilter::engine
