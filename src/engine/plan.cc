#include "engine/plan.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>

#include "base/fail.h"

namespace kilter::engine {
namespace {

constexpr size_t kBufferAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

std::shared_ptr<void> allocate_arena(size_t bytes) {
    if (bytes == 0) return nullptr;
    // Huge pages spare the TLB on large activations; the advice is free where the kernel ignores it.
    const size_t alignment = bytes >= kHugePage ? kHugePage : 4096;
    const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
    require(memory != nullptr, "out of memory: cannot allocate {} MB for activations", bytes >> 20);
    if (alignment == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);
    return {memory, std::free};
}

}  // namespace

size_t place_buffers(std::vector<Buffer>& buffers) {
    std::vector<size_t> order;
    for (size_t i = 0; i < buffers.size(); ++i)
        if (buffers[i].kind == Buffer::Kind::arena && buffers[i].first_step >= 0 && buffers[i].bytes > 0)
            order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
    std::vector<size_t> placed;  // sorted by offset
    size_t total = 0;
    for (const size_t index : order) {
        Buffer& buffer = buffers[index];
        const size_t bytes = (buffer.bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
        size_t offset = 0;
        for (const size_t other : placed) {
            const Buffer& neighbour = buffers[other];
            const bool apart =
                neighbour.last_step < buffer.first_step || buffer.last_step < neighbour.first_step;
            if (apart) continue;
            if (offset + bytes <= neighbour.offset) break;
            const size_t end = neighbour.offset + neighbour.bytes;
            offset = std::max(offset, (end + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment);
        }
        buffer.offset = offset;
        total = std::max(total, offset + bytes);
        const auto place =
            std::upper_bound(placed.begin(), placed.end(), offset,
                             [&](size_t at, size_t other) { return at < buffers[other].offset; });
        placed.insert(place, index);
    }
    return total;
}

Execution::Execution(const Plan& plan, char* arena) : stream(cpu()), plan_(plan) {
    if (arena == nullptr) {
        arena_ = allocate_arena(plan.arena_bytes);
        arena = static_cast<char*>(arena_.get());
    }
    bases_.resize(plan.buffers.size(), nullptr);
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
        const Buffer& buffer = plan.buffers[i];
        if (buffer.kind == Buffer::Kind::arena && arena != nullptr) bases_[i] = arena + buffer.offset;
        if (buffer.kind == Buffer::Kind::constant)
            bases_[i] =
                static_cast<char*>(const_cast<void*>(buffer.constant.get()));  // NOLINT: steps only read it
    }
    arguments.resize(plan.steps.size());
    states.resize(plan.steps.size());
    for (size_t i = 0; i < plan.steps.size(); ++i) plan.steps[i]->bind(*this, i);
}

void Execution::set_external(int buffer, void* data) {
    if (buffer < 0 || bases_[static_cast<size_t>(buffer)] == data) return;
    bases_[static_cast<size_t>(buffer)] = static_cast<char*>(data);
    const auto entry = followers_.find(buffer);
    if (entry == followers_.end()) return;
    for (Follower& follower : entry->second)
        follower.memory.set_data_handle(static_cast<char*>(data) + follower.offset);
}

dnnl::memory Execution::memory(const Array& array) {
    const Buffer& buffer = plan_.buffers[static_cast<size_t>(array.buffer)];
    char* base = bases_[static_cast<size_t>(array.buffer)];
    dnnl::memory memory(array.desc, cpu(), base == nullptr ? nullptr : base + array.offset);
    if (buffer.kind == Buffer::Kind::input || buffer.kind == Buffer::Kind::output)
        followers_[array.buffer].push_back({memory, array.offset});
    return memory;
}

Tensor Execution::tensor(const Array& array) const {
    return Tensor::view(array.dtype, array.shape, static_cast<void*>(address(array)));
}

void Execution::run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) plan_.steps[i]->run(*this, i);
}

std::vector<double> Execution::run_timed() {
    std::vector<double> times(plan_.steps.size());
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        plan_.steps[i]->run(*this, i);
        times[i] =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    return times;
}

}  // namespace kilter::engine
