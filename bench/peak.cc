// The arithmetic peak of this machine: how many multiply-accumulate operations its cores do in a second when nothing else
// holds them up. A network's MACs over this number is the least time any engine can take for it without saving operations.
//
//     ninja -C build/release bench_peak && build/release/bench_peak
//
// Needs AVX512-VNNI. Best of several rounds: other work on the machine only ever makes a round slower.
#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kAccumulators = 16;  // more than latency times pipes, fewer than registers
constexpr long kSteps = 20'000'000;

__attribute__((target("avx512f,avx512vnni"))) int integer_products() {
    __m512i sums[kAccumulators];
    for (__m512i& sum : sums) sum = _mm512_setzero_si512();
    __m512i x = _mm512_set1_epi8(3);
    const __m512i weights = _mm512_set1_epi8(-2);
    for (long i = 0; i < kSteps; ++i) {
        for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, x, weights);
        asm volatile("" : "+v"(x));  // keeps the loop
    }
    __m512i total = sums[0];
    for (int i = 1; i < kAccumulators; ++i) total = _mm512_add_epi32(total, sums[i]);
    return _mm512_reduce_add_epi32(total);
}

__attribute__((target("avx512f"))) int float_products() {
    __m512 sums[kAccumulators];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    __m512 x = _mm512_set1_ps(1e-3F);
    const __m512 weights = _mm512_set1_ps(-2e-3F);
    for (long i = 0; i < kSteps; ++i) {
        for (__m512& sum : sums) sum = _mm512_fmadd_ps(x, weights, sum);
        asm volatile("" : "+v"(x));
    }
    __m512 total = sums[0];
    for (int i = 1; i < kAccumulators; ++i) total = _mm512_add_ps(total, sums[i]);
    return static_cast<int>(_mm512_reduce_add_ps(total));
}

double gigamacs(int (*work)(), unsigned threads, int lanes) {
    double best = 0;
    for (int round = 0; round < 7; ++round) {
        std::vector<int> results(threads);
        const auto start = std::chrono::steady_clock::now();
        std::vector<std::jthread> pool;
        for (unsigned i = 0; i < threads; ++i) pool.emplace_back([&, i] { results[i] = work(); });
        pool.clear();
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        best = std::max(best, 1e-9 * threads * lanes * kAccumulators * kSteps / seconds.count());
    }
    return best;
}

}  // namespace

int main() {
    if (!__builtin_cpu_supports("avx512vnni")) {
        std::fprintf(stderr, "this CPU has no AVX512-VNNI\n");
        return 1;
    }
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    std::printf("%u threads: %.0f GMAC/s u8 x s8, %.0f GMAC/s f32\n", threads,
                gigamacs(integer_products, threads, 64), gigamacs(float_products, threads, 16));
}
