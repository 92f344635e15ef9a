// What calibration costs over plain FP32 runs of the same samples, and whether its memory grows with their number.
//
//     ninja -C build/release bench_calibration
//     build/release/bench_calibration build/models/mobilenetv2.onnx --images 1000
//
// Rounds of plain runs and of calibration alternate, so that both see the same machine; the ratio is formed per round, from
// CPU time with one instance. Models with one image input only.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string_view>

#include "kilter/base/error.h"
#include "kilter/calibration/calibrate.h"
#include "kilter/formats/onnx.h"

namespace {

using namespace kilter;

constexpr int kRounds = 5;
constexpr size_t kDistinct = 8;  // samples made up; they are used in turn

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::vector<std::vector<Tensor>> made_up_samples(const Program& program) {
    if (program.inputs().size() != 1 || !program.inputs()[0].type.shape)
        throw Error("bench_calibration takes models with one input of known rank");
    Shape shape;
    for (const Dim& dim : *program.inputs()[0].type.shape) shape.push_back(dim.known() ? dim.value : 1);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<std::vector<Tensor>> samples;
    for (size_t i = 0; i < kDistinct; ++i) {
        Tensor tensor(DType::f32, shape);
        for (float& value : tensor.as_mutable<float>()) value = normal(random);
        samples.push_back({tensor});
    }
    return samples;
}

int run(const char* path, int64_t images, int instances) {
    const Program program(onnx::read(path), {.threads = 1});
    const auto samples = made_up_samples(program);
    const auto calibration = [&](int64_t count) {
        int64_t at = 0;
        return calibrate(program,
                         [&]() -> std::optional<std::vector<Tensor>> {
                             if (at == count) return std::nullopt;
                             return samples[static_cast<size_t>(at++) % kDistinct];
                         },
                         {.instances = instances});
    };
    calibration(static_cast<int64_t>(kDistinct));
    std::vector<double> ratios;
    std::printf("%12s %12s %8s %12s\n", "plain ms", "calibrate ms", "ratio", "wall ms");
    const int64_t part = std::max<int64_t>(images / kRounds, 1);
    for (int round = 0; round < kRounds; ++round) {
        const double start = cpu_seconds();
        for (int64_t i = 0; i < part; ++i) program.run(samples[static_cast<size_t>(i) % kDistinct]);
        const double middle = cpu_seconds();
        const double wall = wall_seconds();
        calibration(part);
        const double end = cpu_seconds();
        const double per_image = 1000.0 / static_cast<double>(part);
        ratios.push_back((end - middle) / (middle - start));
        std::printf("%12.3f %12.3f %8.3f %12.3f\n", (middle - start) * per_image, (end - middle) * per_image,
                    ratios.back(), (wall_seconds() - wall) * per_image);
    }
    std::ranges::sort(ratios);
    std::printf("calibration costs %.2f times a plain run of CPU time (median; %.2f to %.2f)\n",
                ratios[kRounds / 2], ratios.front(), ratios.back());
    std::printf("peak memory: %.0f MB", peak_megabytes());
    calibration(images);
    std::printf(", after %lld images in one go %.0f MB\n", static_cast<long long>(images), peak_megabytes());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    int64_t images = 500;
    int instances = 1;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (std::string_view(argv[i]) == "--images") images = std::atoll(argv[i + 1]);
        if (std::string_view(argv[i]) == "--instances") instances = std::atoi(argv[i + 1]);
    }
    if (argc < 2 || argc % 2 != 0 || images < 1 || instances < 1) {
        std::fprintf(stderr, "usage: bench_calibration MODEL [--images N] [--instances N]\n");
        return 2;
    }
    try {
        return run(argv[1], images, instances);
    } catch (const Error& error) {
        std::fprintf(stderr, "bench_calibration: %s\n", error.what());
        return 1;
    }
}
