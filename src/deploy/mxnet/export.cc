// From a quantized model to MXNet's files.
#include "base/fail.h"
#include "base/output_file.h"
#include "deploy/mxnet/integer_symbol.h"
#include "kilter/formats/mxnet.h"

namespace kilter::mxnet {
namespace {

IntegerChoice choice_of(const QuantizedModel& quantized, const Symbol& symbol) {
    IntegerChoice choice;
    size_t known = 0;
    for (const OperatorPlan& entry : quantized.plan.operators) {
        const auto is_named = [&](const SymbolNode& node) { return node.name == entry.name; };
        known += static_cast<size_t>(std::ranges::any_of(symbol.nodes, is_named));
        if (entry.precision != Precision::int8) choice.excluded.insert(entry.name);
    }
    require(known > 0 || quantized.plan.operators.empty(), "the quantized model was made from another one");
    // The extremes, where ranges that leave some values out suit kilter's engine better: MXNet clips before it adds, and a
    // CIFAR-10 network with 20 layers lost 1.6 points to that.
    choice.ranges.insert(quantized.report.seen.begin(), quantized.report.seen.end());
    for (const ValueReport& value : quantized.report.values) choice.ranges.emplace(value.value, value.range);
    return choice;
}

void write_file(const std::filesystem::path& path, std::string_view content) {
    OutputFile file(path);
    file.write(content.data(), content.size());
    file.commit();
}

}  // namespace

std::vector<ExportedOperator> export_model(const QuantizedModel& quantized,
                                           const std::filesystem::path& source,
                                           const std::filesystem::path& prefix) {
    const Files files = find_files(source);
    const Symbol symbol = read_symbol(files.symbol);
    const IntegerModel made = make_integer(symbol, read_params(files.params), choice_of(quantized, symbol));
    write_file(prefix.string() + "-0000.params", write_params_bytes(made.arrays));
    write_file(prefix.string() + "-symbol.json", to_json(made.symbol));
    return made.operators;
}

}  // namespace kilter::mxnet
