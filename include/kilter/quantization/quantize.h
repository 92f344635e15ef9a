// Quantization: an optimized FP32 graph, a Plan and calibration Stats become a graph with QuantizeLinear and DequantizeLinear
// around every operator that is to run on integers. That graph is what the engine runs and what is written to files.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "kilter/quantization/plan.h"

namespace kilter {

//! What the numbers are chosen for. Any runtime gives the right results with any of them; this is about speed, and for MXNet about
//! what it can do.
enum class Target {
    kilter,  // residual additions are fused into the product before them (kilter, OpenVINO)
    onnxruntime,  // ONNX Runtime fuses an operator only when its own result is quantized: a pair stands before each addition
    mxnet,  // MXNet knows no zero points, and clips before it adds: symmetric ranges that hold everything
};
std::string_view name(Target target);
Target target(std::string_view name);

struct Recipes {
    bool bias_correction = true;  // shift biases by the mean error that rounding the weights makes
    bool equalization = false;    // even out channel ranges between convolutions, before calibration
    bool smooth_quant = false;    // move outliers of activations into the weights
    double smooth_alpha = 0.5;    // how much of them: 0 none, 1 all
    bool overflow_safe = false;   // no u8·s8 pair sum can exceed int16: for machines without VNNI
    bool float_first = false;     // operators that read the graph's inputs stay in floating point
    bool float_last = false;      // so do the last products before its outputs
};
//! Switches on a recipe by name (bias-correction, equalization, smooth-quant, overflow-safe, float-first, float-last), or
//! off the one that is on by itself (no-bias-correction).
void enable(Recipes& recipes, std::string_view name);  // throws Error listing the names

//! Weights and ranges that quantize() remembers from call to call, for one prepared model and its statistics: plans that differ in
//! one operator share all others, down to the bytes, so that engines pack them once. Thread-safe.
class QuantizationCache;
std::shared_ptr<QuantizationCache> make_quantization_cache();

struct QuantizeOptions {
    Mode mode = Mode::smart;
    Target target = Target::kilter;
    std::vector<Override> overrides;   // applied in order
    std::vector<std::string> exclude;  // patterns, also "type:Conv"; these stay in floating point
    std::vector<std::string> only;     // when not empty: everything else stays in floating point
    Recipes recipes;
    std::optional<Plan>
        plan;  // taken instead of the default one; mode, overrides, exclude and only do not apply then
    std::shared_ptr<QuantizationCache> cache;  // may be null
};

//! What became of one operator, and why.
struct OperatorReport {
    std::string name, op;
    Precision precision = Precision::f32;
    std::string reason;  // why it is not quantized, or what was special about it; may be empty
};

//! The parameters a value was quantized with.
struct ValueReport {
    std::string value;
    Range range;
    QuantParams params;
};

struct QuantizeReport {
    std::vector<OperatorReport> operators;
    std::vector<ValueReport> values;
    std::vector<std::pair<std::string, Range>> seen;  // extremes of every calibrated value, quantized or not
    std::vector<std::string> notes;                   // what recipes did
    size_t bytes_before = 0, bytes_after = 0;         // of constants
    std::string text() const;
};

struct QuantizedModel {
    Model model;  // the QDQ graph, in optimized form: Program runs it, save() writes it
    Plan plan;
    QuantizeReport report;
    std::vector<std::pair<std::string, std::string>> assumptions;  // e.g. isa: vnni
};

//! Brings a model as read to the form that is calibrated and quantized: canonical, optimized, and what the recipes and the
//! target ask for. Calibrate the result as it is (EngineOptions::optimize off), then quantize it. Returns notes for the report.
//! Throws Error when the model is quantized already.
std::vector<std::string> prepare(Model& model, const QuantizeOptions& options = {});

//! Changes a plan by the overrides, `only` and `exclude` of the options. Throws Error when a pattern matches nothing.
void apply_options(Plan& plan, const QuantizeOptions& options);
//! The plan that quantize() would use for a prepared graph.
Plan make_plan(const Graph& graph, const QuantizeOptions& options = {});

//! Quantizes a prepared model; all recipes but SmoothQuant. Throws Error when the plan does not fit the graph or the statistics are of another model.
QuantizedModel quantize(Model model, const Stats& stats, const QuantizeOptions& options = {});

//! The whole way from a model as read: prepares it, calls `calibrate` with it, quantizes. SmoothQuant calibrates twice.
using Calibrate = std::function<Stats(const Model& prepared)>;
QuantizedModel quantize(Model model, const Calibrate& calibrate, const QuantizeOptions& options = {});

//! The quantized model with standard ONNX operators only, in the lowest opset that has them, plan and ranges in its metadata.
Model export_model(const QuantizedModel& quantized);
void save(const QuantizedModel& quantized, const std::filesystem::path& path);

//! The plan that save() stored in a model; nothing when there is none.
std::optional<Plan> stored_plan(const Model& model);

}  // namespace kilter
