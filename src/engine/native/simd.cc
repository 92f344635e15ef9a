#include "engine/native/simd.h"

namespace kilter::engine {

Isa isa() {
    static const Isa found = [] {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            return Isa::avx512;
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
        return Isa::baseline;
    }();
    return found;
}

}  // namespace kilter::engine
