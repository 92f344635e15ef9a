// What kernels on AVX512-VNNI share: the instruction sets they are compiled for, and whether this machine has them.
#pragma once

#define KILTER_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define KILTER_VNNI_INLINE KILTER_VNNI __attribute__((always_inline)) static inline

namespace kilter::engine {

bool has_vnni();
//! With tiles of matrices in hardware oneDNN's products are several times as fast as anything VNNI can do.
bool has_amx();

}  // namespace kilter::engine
