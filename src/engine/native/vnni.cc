#include "engine/native/vnni.h"

#include <dnnl.hpp>

#include "engine/native/simd.h"

namespace kilter::engine {

bool has_vnni() {
    static const bool found = isa() == Isa::avx512 && __builtin_cpu_supports("avx512vnni") != 0;
    return found;
}

// oneDNN is asked, and not the CPU: the system must allow AMX, too, and ONEDNN_MAX_CPU_ISA may forbid it.
bool has_amx() {
    static const bool found = [] {
        const auto usable = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
        const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
        return (usable & wanted) == wanted;
    }();
    return found;
}

}  // namespace kilter::engine
