// Tunes a classifier for 28x28 grey images: the C++ API in ten lines, complete with errors.
//     tune MODEL.onnx IMAGES LABELS OUT.onnx
#include <cstdio>

#include "kilter/base/error.h"
#include "kilter/data/open.h"
#include "kilter/formats/onnx.h"
#include "kilter/tuning/job.h"

using namespace kilter;

int main(int argc, char** argv) {
    if (argc != 5) return std::fprintf(stderr, "usage: tune MODEL.onnx IMAGES LABELS OUT.onnx\n"), 2;
    try {
        const Model model = onnx::read(argv[1]);
        const std::vector<Port> inputs = Program(clone(model)).inputs();
        const auto open = [&](LoaderOptions how) {
            DataSource data = open_data({argv[2]}, inputs, {.scale = 1 / 255.0F, .labels = argv[3]});
            return batches_of(std::make_shared<Loader>(data.dataset, std::move(data.transforms), how));
        };
        std::vector<std::unique_ptr<Metric>> metrics;
        metrics.push_back(make_metric({"topk", {}}));
        const auto evaluation = evaluate_with(open({.batch_size = 8, .shuffle = true}), std::move(metrics));
        const TuneResult result = tune(model, open({.batch_size = 8, .limit = 100}), *evaluation,
                                       {.criterion = Criterion::parse("1%")});
        save(result.model, argv[4]);
        std::printf("%s: accuracy %.4f of %.4f, %zu operators in floating point\n",
                    result.met ? "kept" : "missed", result.best.outcome.accuracy[0],
                    result.baseline.accuracy[0], result.spared.size());
    } catch (const Error& error) {
        std::fprintf(stderr, "tune: %s\n", error.what());
        return 1;
    }
}
