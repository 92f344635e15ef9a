// Run-time dispatch of loops that the compiler vectorizes: one body, compiled for several instruction sets.
// A plain build has no -march flags; KILTER_SIMD makes `name` from the always-inline `name##_body`.
#pragma once

namespace kilter::engine {

enum class Isa { baseline, avx2, avx512 };
//! The best this CPU has; decided once.
Isa isa();

}  // namespace kilter::engine

#define KILTER_INLINE static inline __attribute__((always_inline))

#define KILTER_SIMD(name, parameters, ...)                                                               \
    __attribute__((                                                                                      \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))) static void name##_avx512 parameters {   \
        name##_body(__VA_ARGS__);                                                                        \
    }                                                                                                    \
    __attribute__((target("avx2,fma"))) static void name##_avx2 parameters { name##_body(__VA_ARGS__); } \
    static void name##_baseline parameters { name##_body(__VA_ARGS__); }                                 \
    static void name parameters {                                                                        \
        switch (::kilter::engine::isa()) {                                                               \
            case ::kilter::engine::Isa::avx512:                                                          \
                return name##_avx512(__VA_ARGS__);                                                       \
            case ::kilter::engine::Isa::avx2:                                                            \
                return name##_avx2(__VA_ARGS__);                                                         \
            default:                                                                                     \
                return name##_baseline(__VA_ARGS__);                                                     \
        }                                                                                                \
    }
