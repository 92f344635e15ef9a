// libFuzzer target: any bytes, read as a TensorFlow graph (binary or text) or as a table of variables, end in an Error or
// in a graph that survives all that follows reading.
#include <cstdio>
#include <cstdlib>

#include "formats/tensorflow/bundle.h"
#include "formats/tensorflow/graph_def.h"
#include "formats/tensorflow/inline_functions.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/summary.h"
#include "formats/tensorflow/text_format.h"
#include "kilter/base/error.h"
#include "kilter/formats/onnx.h"
#include "kilter/passes/passes.h"

namespace {

using namespace kilter::tensorflow;

std::span<const std::byte> bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// What kilter wrote it must be able to read, and write again just so: an Error there is a finding.
void check_round_trip(const TfGraph& graph) {
    const std::string once = write_graph_def_bytes(graph);
    if (once.empty()) return;
    std::string text;
    try {
        text = graph_def_to_text(once);
    } catch (const kilter::Error&) {  // damage in what is only passed on, e.g. inside a tensor
    }
    try {
        const TfGraph again = read_graph_def_bytes(bytes_of(once));
        if (write_graph_def_bytes(again) != once)
            throw kilter::Error("the second copy differs from the first");
        if (!text.empty() && graph_def_to_text(graph_def_from_text(text)) != text)
            throw kilter::Error("the second text differs from the first");
    } catch (const kilter::Error& error) {
        std::fprintf(stderr, "cannot read back what was written: %s\n", error.what());
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        read_string_table({reinterpret_cast<const char*>(data), size});
    } catch (const kilter::Error&) {
    }
    try {
        TfGraph graph = read_graph_def_bytes({reinterpret_cast<const std::byte*>(data), size});
        check_round_trip(graph);
        summarize(graph);
        inline_functions(graph);
        check(graph);
        kilter::Model model = lower(graph);
        kilter::onnx::write_bytes(model);
        kilter::canonicalize(model);
        kilter::infer_types(model.graph);
        kilter::verify(model.graph);
        kilter::optimize(model.graph);
    } catch (const kilter::Error&) {  // the right answer to a bad file
    }
    return 0;
}
