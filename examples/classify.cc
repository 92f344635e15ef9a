// Classifies one grey image with the network in fixtures/: the C++ example of the README, complete with errors.
#include <algorithm>
#include <cstdio>

#include "kilter/base/error.h"
#include "kilter/engine/program.h"
#include "kilter/formats/onnx.h"

int main(int argc, char** argv) {
    try {
        const char* path = argc > 1 ? argv[1] : "fixtures/fashion_mnist/model.onnx";
        const kilter::Program program(kilter::onnx::read(path), {.threads = 2});
        const kilter::Tensor image = kilter::Tensor::filled(kilter::DType::f32, {1, 1, 28, 28}, 0.5);
        const kilter::Tensor logits = program.run({image})[0];
        const auto values = logits.as<float>();
        std::printf("class %td\n", std::max_element(values.begin(), values.end()) - values.begin());
    } catch (const kilter::Error& error) {
        std::fprintf(stderr, "classify: %s\n", error.what());
        return 1;
    }
}
