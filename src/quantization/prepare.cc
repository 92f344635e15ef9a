#include <fmt/format.h>

#include "base/fail.h"
#include "kilter/passes/passes.h"
#include "quantization/names.h"
#include "quantization/recipes.h"

namespace kilter {

void enable(Recipes& recipes, std::string_view name) {
    if (name == "no-bias-correction") {
        recipes.bias_correction = false;
        return;
    }
    static constexpr Word<bool Recipes::*> kRecipes[] = {
        {&Recipes::bias_correction, "bias-correction"}, {&Recipes::equalization, "equalization"},
        {&Recipes::smooth_quant, "smooth-quant"},       {&Recipes::overflow_safe, "overflow-safe"},
        {&Recipes::float_first, "float-first"},         {&Recipes::float_last, "float-last"},
    };
    recipes.*parse_word(kRecipes, "recipe", name) = true;
}

std::vector<std::string> prepare(Model& model, const QuantizeOptions& options) {
    try {
        canonicalize(model);
        infer_types(model.graph);
        if (model.graph.count("QuantizeLinear") + model.graph.count("DequantizeLinear") > 0)
            throw Error("the model is quantized already", "start from the FP32 model");
        optimize(model.graph);
    } catch (const Error& error) {
        throw model.source.empty() ? error : error.in(model.source);
    }
    std::vector<std::string> notes;
    if (options.recipes.equalization) {
        const Equalized done = equalize(model.graph);
        notes.push_back(fmt::format("equalization: {} pairs of convolutions", done.pairs));
        if (done.clips_split > 0)
            notes.push_back(fmt::format(
                "equalization: {} Clip have a limit for each channel now, which ONNX Runtime does not fuse",
                done.clips_split));
    }
    if (options.target == Target::onnxruntime && split_residuals(model.graph)) infer_types(model.graph);
    return notes;
}

}  // namespace kilter
