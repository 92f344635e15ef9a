// libFuzzer target: any bytes, read as an MXNet model, end in an Error or in a model that survives all that follows reading.
// What stands before the first NUL is the symbol, what follows it the parameters; without one, it is parameters alone.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "formats/mxnet/lower.h"
#include "kilter/base/error.h"
#include "kilter/passes/passes.h"

namespace {

using kilter::mxnet::NamedArrays;

NamedArrays read_arrays(const uint8_t* data, size_t size) {
    return kilter::mxnet::read_params_bytes({reinterpret_cast<const std::byte*>(data), size}, nullptr);
}

// What kilter wrote it must be able to read: an Error there is a finding.
void check_round_trip(const kilter::mxnet::Symbol& symbol) {
    const std::string text = to_json(symbol);
    try {
        if (to_json(kilter::mxnet::parse_symbol(text)) == text) return;
        std::fprintf(stderr, "reads back as something else\n");
    } catch (const kilter::Error& error) {
        std::fprintf(stderr, "cannot read back what was written: %s\n", error.what());
    }
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        const auto* end = static_cast<const uint8_t*>(std::memchr(data, 0, size));
        if (size == 0 || data[0] != '{' || end == nullptr) {
            read_arrays(data, size);
            return 0;
        }
        const kilter::mxnet::Symbol symbol = kilter::mxnet::parse_symbol(
            {reinterpret_cast<const char*>(data), static_cast<size_t>(end - data)});
        check_round_trip(symbol);
        kilter::Model model = lower(symbol, read_arrays(end + 1, size - static_cast<size_t>(end - data) - 1));
        kilter::canonicalize(model);
        kilter::infer_types(model.graph);
        kilter::verify(model.graph);
        kilter::optimize(model.graph);
    } catch (const kilter::Error&) {  // the right answer to a bad file
    }
    return 0;
}
