// The QDQ graph as a file that other runtimes read, and back.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/fail.h"
#include "kilter/formats/onnx.h"
#include "kilter/passes/passes.h"
#include "kilter/quantization/quantize.h"
#include "kilter/version.h"

namespace kilter {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPlanKey = "kilter.plan";
constexpr std::string_view kRangesKey = "kilter.ranges";
constexpr std::string_view kAssumptionsKey = "kilter.assumptions";
constexpr std::string_view kVersionKey = "kilter.version";

// QuantizeLinear per channel is the reason not to go lower.
constexpr int64_t kLowestOpset = 13;

// Operators whose canonical form is that of opset 13, for the attributes given below.
constexpr std::array<std::string_view, 78> kSinceLowest{"Abs",
                                                        "Acos",
                                                        "Add",
                                                        "And",
                                                        "ArgMax",
                                                        "ArgMin",
                                                        "AveragePool",
                                                        "Cast",
                                                        "Ceil",
                                                        "Celu",
                                                        "Clip",
                                                        "Concat",
                                                        "ConstantOfShape",
                                                        "Conv",
                                                        "ConvTranspose",
                                                        "Cos",
                                                        "DepthToSpace",
                                                        "DequantizeLinear",
                                                        "Div",
                                                        "Dropout",
                                                        "Elu",
                                                        "Equal",
                                                        "Erf",
                                                        "Exp",
                                                        "Expand",
                                                        "Flatten",
                                                        "Floor",
                                                        "Gather",
                                                        "GatherElements",
                                                        "GatherND",
                                                        "Gemm",
                                                        "GlobalAveragePool",
                                                        "GlobalMaxPool",
                                                        "Greater",
                                                        "HardSigmoid",
                                                        "Hardmax",
                                                        "Identity",
                                                        "InstanceNormalization",
                                                        "LRN",
                                                        "LeakyRelu",
                                                        "Less",
                                                        "Log",
                                                        "LogSoftmax",
                                                        "MatMul",
                                                        "Max",
                                                        "MaxPool",
                                                        "Mean",
                                                        "Min",
                                                        "Mod",
                                                        "Mul",
                                                        "Neg",
                                                        "NonZero",
                                                        "Not",
                                                        "Or",
                                                        "PRelu",
                                                        "Pad",
                                                        "Pow",
                                                        "QuantizeLinear",
                                                        "Range",
                                                        "Reciprocal",
                                                        "ReduceSum",
                                                        "Relu",
                                                        "Reshape",
                                                        "Resize",
                                                        "Round",
                                                        "Selu",
                                                        "Shape",
                                                        "Sigmoid",
                                                        "Sign",
                                                        "Sin",
                                                        "Slice",
                                                        "Softmax",
                                                        "Softplus",
                                                        "Softsign",
                                                        "SpaceToDepth",
                                                        "Split",
                                                        "Sqrt",
                                                        "Squeeze"};
constexpr std::array<std::string_view, 8> kAlsoSinceLowest{"Sub",  "Sum",       "Tanh",      "Tile",
                                                           "TopK", "Transpose", "Unsqueeze", "Where"};

struct Since {
    std::string_view op;
    int64_t opset;
};
constexpr Since kLater[] = {
    {"BatchNormalization", 15}, {"CumSum", 14},          {"GreaterOrEqual", 16},
    {"GroupNormalization", 21}, {"HardSwish", 14},       {"LayerNormalization", 17},
    {"LessOrEqual", 16},        {"ReduceL1", 18},        {"ReduceL2", 18},
    {"ReduceLogSum", 18},       {"ReduceLogSumExp", 18}, {"ReduceMax", 18},
    {"ReduceMean", 18},         {"ReduceMin", 18},       {"ReduceProd", 18},
    {"ReduceSumSquare", 18},    {"ScatterElements", 16}, {"ScatterND", 16},
};

// Attributes and inputs that came later than the operator.
int64_t opset_of_form(const Node& node) {
    const auto has = [&](std::string_view attribute) { return node.attributes.has(attribute); };
    if (node.is("Reshape") && node.attributes.get_int("allowzero") != 0) return 14;
    if (node.is("Shape") && (has("start") || has("end"))) return 15;
    if (node.is("Split") && has("num_outputs")) return 18;
    if (node.is("Pad") && node.attributes.get_string("mode", "constant") == "wrap") return 19;
    if (node.is("Pad") && node.input(3) != nullptr) return 18;
    if (node.is("Resize") && (has("antialias") || has("axes") || has("keep_aspect_ratio_policy"))) return 18;
    if (node.is("Resize") &&
        node.attributes.get_string("coordinate_transformation_mode") == "half_pixel_symmetric")
        return 19;
    if (node.is("AveragePool") && has("dilations")) return 19;
    if ((node.is("QuantizeLinear") || node.is("DequantizeLinear")) &&
        (has("block_size") || has("output_dtype")))
        return 21;
    return kLowestOpset;
}

// The lowest opset whose operators mean what the canonical ones of this graph do; `canonical` when in doubt.
int64_t lowest_opset(const Graph& graph, int64_t canonical) {
    int64_t lowest = kLowestOpset;
    for (const auto& node : graph.nodes()) {
        for (const Graph* body : node->subgraphs()) lowest = std::max(lowest, lowest_opset(*body, canonical));
        for (const Value* value : node->outputs())
            if (value != nullptr && value->type.dtype == DType::bf16) return canonical;
        if (!node->domain().empty()) continue;
        const auto later = std::ranges::find(kLater, node->op(), &Since::op);
        if (later != std::end(kLater)) {
            lowest = std::max(lowest, later->opset);
        } else if (std::ranges::find(kSinceLowest, node->op()) != kSinceLowest.end() ||
                   std::ranges::find(kAlsoSinceLowest, node->op()) != kAlsoSinceLowest.end()) {
            lowest = std::max(lowest, opset_of_form(*node));
        } else {
            return canonical;
        }
    }
    return lowest;
}

int64_t ir_version_for(int64_t opset) { return opset < 15 ? 7 : opset < 19 ? 8 : opset < 21 ? 9 : 10; }

void set_opset(Model& model) {
    const int64_t canonical = std::max<int64_t>(model.opset(), kCanonicalOpset);
    const int64_t opset = lowest_opset(model.graph, canonical);
    std::erase_if(model.opsets,
                  [](const auto& entry) { return entry.first.empty() || entry.first == kKilterDomain; });
    model.opsets.insert(model.opsets.begin(), {"", opset});
    model.ir_version = opset > kCanonicalOpset ? model.ir_version : ir_version_for(opset);
}

// ONNX Runtime refuses two operators of one name, and spelling out an operator makes several of a kind.
void make_names_unique(Graph& graph) {
    std::unordered_set<std::string> taken;
    for (const auto& node : graph.nodes()) {
        const std::string stem = node->name.empty() ? node->op() : node->name;
        std::string candidate = stem;
        for (int i = 1; !taken.insert(candidate).second; ++i) candidate = fmt::format("{}_{}", stem, i);
        node->name = std::move(candidate);
    }
}

std::string ranges_json(const QuantizeReport& report) {
    Json json = Json::object();
    for (const ValueReport& value : report.values)
        json[value.value] = {{"min", value.range.min},
                             {"max", value.range.max},
                             {"dtype", name(value.params.dtype)},
                             {"scale", value.params.scales[0]},
                             {"zero_point", value.params.zero_points[0]}};
    return json.dump();
}

std::string assumptions_json(const QuantizedModel& quantized) {
    Json json = Json::object();
    for (const auto& [key, value] : quantized.assumptions) json[key] = value;
    return json.dump();
}

void set_metadata(Model& model, std::string_view key, std::string value) {
    std::erase_if(model.metadata, [&](const auto& entry) { return entry.first == key; });
    model.metadata.emplace_back(key, std::move(value));
}

}  // namespace

Model export_model(const QuantizedModel& quantized) {
    Model model = clone(quantized.model);
    expand_fused(model.graph);
    infer_types(model.graph);
    make_names_unique(model.graph);
    set_opset(model);
    model.producer_name = "kilter";
    model.producer_version = KILTER_VERSION;
    set_metadata(model, kVersionKey, KILTER_VERSION);
    set_metadata(model, kPlanKey, quantized.plan.json());
    set_metadata(model, kRangesKey, ranges_json(quantized.report));
    set_metadata(model, kAssumptionsKey, assumptions_json(quantized));
    return model;
}

void save(const QuantizedModel& quantized, const std::filesystem::path& path) {
    onnx::write(export_model(quantized), path);
}

std::optional<Plan> stored_plan(const Model& model) {
    for (const auto& [key, value] : model.metadata)
        if (key == kPlanKey) return Plan::from_json(value);
    return std::nullopt;
}

}  // namespace kilter
