// What kernels on AVX512-VNNI share: the instruction sets they are compiled for, and whether this machine has them.
#pragma once

#include "engine/native/simd.h"

#define KILTER_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define KILTER_VNNI_INLINE KILTER_VNNI __attribute__((always_inline)) static inline

namespace kilter::engine {

inline bool has_vnni() {
    static const bool found = isa() == Isa::avx512 && __builtin_cpu_supports("avx512vnni") != 0;
    return found;
}

//! With tiles of matrices in hardware oneDNN's products are several times as fast as anything VNNI can do.
inline bool has_amx() {
    static const bool found = __builtin_cpu_supports("amx-int8") != 0;
    return found;
}

}  // namespace kilter::engine
