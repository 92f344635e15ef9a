// libFuzzer target: any bytes, read as an ONNX model, end in an Error or in a model that survives all that
// follows reading.
#include <cstdio>
#include <cstdlib>

#include "kilter/base/error.h"
#include "kilter/formats/onnx.h"
#include "kilter/passes/passes.h"

namespace {

// What kilter wrote it must be able to read: an Error there is a finding.
void check_round_trip(const kilter::Model& model) {
    const std::string text = kilter::onnx::write_bytes(model);
    try {
        const kilter::Model again =
            kilter::onnx::read_bytes({reinterpret_cast<const std::byte*>(text.data()), text.size()});
        if (again.graph.nodes().size() < model.graph.nodes().size())
            throw kilter::Error("operators were lost");
    } catch (const kilter::Error& error) {
        std::fprintf(stderr, "cannot read back what was written: %s\n", error.what());
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        kilter::Model model = kilter::onnx::read_bytes({reinterpret_cast<const std::byte*>(data), size});
        check_round_trip(model);
        kilter::canonicalize(model);
        kilter::infer_types(model.graph);
        kilter::verify(model.graph);
        kilter::optimize(model.graph);
        check_round_trip(model);
    } catch (const kilter::Error&) {  // the right answer to a bad file
    }
    return 0;
}
