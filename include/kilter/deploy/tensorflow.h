// From an FP32 GraphDef to an INT8 GraphDef that stock TensorFlow runs. QuantizableGraph is the way in stages: what can be quantized,
// which tensors to observe, the writing; convert_graph goes it in one call, for `kilter tf quantize` and kilter.graph_converter.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kilter/calibration/calibrate.h"
#include "kilter/quantization/plan.h"

namespace kilter {
class Collector;
}

namespace kilter::tensorflow {

class TfGraph;

struct Interval {
    double min = 0.0;
    double max = 0.0;
};
//! By tensor: the name of the node whose first output it is, "node:1" for others.
using Ranges = std::map<std::string, Interval>;

//! What becomes of one operator. Precisions other than int8 leave it as it is.
struct OperatorChoice {
    Precision precision = Precision::int8;
    Granularity weights = Granularity::per_channel;
    int bits = 8;          // of the weights
    RangeOptions range{};  // of the tensor it reads; where readers disagree, the widest range is taken
};
//! By name of the operator; others are on integers, with one scale per channel and the extremes as ranges.
using Choices = std::map<std::string, OperatorChoice>;

//! Tensors of a run, seen by whoever runs the graph.
class Observations {
  public:
    explicit Observations(const std::vector<std::string>& tensors);
    ~Observations();
    Observations(Observations&&) noexcept;
    Observations& operator=(Observations&&) noexcept;

    //! What a tensor was in one batch. Throws Error when nobody asked for it, it holds no floats, or one is NaN.
    void add(const std::string& tensor, const Tensor& values);
    //! Of all batches. Tensors that were never seen, or seen infinite, are missing.
    Stats stats() const;

  private:
    std::unique_ptr<Collector> collector_;
    std::map<std::string, int64_t> batches_;
};

//! A GraphDef in memory.
class GraphDef {
  public:
    GraphDef() = default;
    explicit GraphDef(TfGraph graph);
    std::string bytes() const;
    //! Written aside and renamed; as text when the name ends in .pbtxt.
    void save(const std::filesystem::path& path) const;
    const TfGraph& graph() const { return *graph_; }

  private:
    std::shared_ptr<const TfGraph> graph_;
};

struct ConvertedOperator {
    std::string name, op;
    bool integer = false;
    std::string note;  // what was fused into it, or why it stayed in floats
};

struct IntegerGraph {
    GraphDef graph;
    GraphDef unfused;  // convolutions and requantizations still apart
    std::vector<ConvertedOperator> operators;
    size_t quantize = 0, dequantize = 0;  // where floats become integers and back
};

//! Which part of a graph is meant.
struct GraphSelection {
    std::vector<std::string> inputs,
        outputs;  // names of nodes; empty: the placeholders, and what nobody reads
    std::vector<std::string> excluded_ops, excluded_nodes;
    std::string signature;  // of a SavedModel; empty: serving_default, or the only one there is
};

struct QuantizableOperator {
    std::string name, op;
    std::vector<std::string> fused;    // names of the nodes that become part of it
    std::vector<std::string> tensors;  // that it reads as integers
};

//! A graph made ready for quantization: stripped, optimized, and what of it could run on integers is known.
class QuantizableGraph {
  public:
    //! `source`: a frozen graph (.pb, .pbtxt) or a SavedModel. Throws Error when a name does not exist or there is nothing to quantize.
    explicit QuantizableGraph(const std::filesystem::path& source, GraphSelection selection = {});
    //! A serialized GraphDef.
    explicit QuantizableGraph(std::span<const std::byte> bytes, GraphSelection selection = {});

    const std::vector<std::string>& inputs() const;
    const std::vector<std::string>& outputs() const;
    //! Convolutions and products, then the pools, concatenations and reshapes that may run on bytes between them.
    const std::vector<QuantizableOperator>& operators() const;
    //! What stays in floats, and why.
    const std::vector<ConvertedOperator>& left_out() const;
    //! The tensors whose ranges are needed, whatever is chosen. Sorted.
    const std::vector<std::string>& tensors() const;

    //! The optimized FP32 graph, and the same with Prints behind the tensors: of their extremes, or of how often values occur, for which
    //! the extremes must be known.
    GraphDef fp32() const;
    GraphDef logging() const;
    GraphDef counting(const Ranges& extremes) const;

    //! Runs the optimized graph in kilter. `samples` gives arrays in the order of inputs(). Throws Error when a node is opaque to kilter.
    Stats observe(const SampleSource& samples) const;
    //! Shows `seen` every tensor of every batch.
    void observe(const SampleSource& samples,
                 const std::function<void(const std::string& tensor, const Tensor& values)>& seen) const;

    //! The choices that a plan for the same model, lowered by kilter, stands for: operators are found by their names and those of what
    //! was fused into them; what the plan does not know stays in floats. Throws Error when it knows none.
    Choices choices(const Plan& plan) const;

    //! Throws Error when a choice names no operator or a range that is needed is missing.
    IntegerGraph write(const Choices& choices, const Stats& stats) const;
    IntegerGraph write(const Choices& choices, const Ranges& ranges) const;

  private:
    struct Parts;
    void prepare(TfGraph graph, GraphSelection selection);
    std::shared_ptr<const Parts> parts_;
};

//! How the ranges of several batches become one. direct: the 5th percentile of the minima and the 95th of the maxima (all of
//! them when there are fewer than twenty). ma: an average that moves half way to every batch. minmax: the extremes.
enum class BatchRanges { direct, ma, minmax };
//! Ranges from the extremes of batches, or from how often values occur.
using RangeRule = std::variant<BatchRanges, RangeOptions>;
//! "DIRECT", "MA", "MINMAX", "KL", "MSE", "PERCENTILE" or "PERCENTILE:99.9", in any case. Throws Error.
RangeRule range_rule(std::string_view name);

struct ConvertOptions {
    std::filesystem::path input_graph;
    std::filesystem::path output_graph;        // empty: int8_final_fused_graph.pb beside the input
    std::vector<std::string> inputs, outputs;  // names of nodes
    std::vector<std::string> excluded_ops, excluded_nodes;
    bool per_channel = false;
    RangeRule algorithm = BatchRanges::direct;
    //! A shell command that runs the graph whose path stands for "{}", or for the value of input_graph= in it. Without
    //! either, --input_graph=PATH is added. It runs twice for ranges from how often values occur.
    std::string calibration_command;
    //! Instead of a command: arrays for `inputs`, in their order, as often as there are any.
    SampleSource samples;
    //! Keeps fp32_optimized_graph.pb, int8_logged_graph.pb and int8_frozen_range_graph.pb beside the output.
    bool debug = false;
    std::filesystem::path fused_fp32;  // where the optimized FP32 graph is written too; empty: nowhere
    std::function<void(const std::string&)> progress;
};

struct ConvertReport {
    std::filesystem::path output_graph;
    std::vector<ConvertedOperator> operators;
    size_t quantize = 0, dequantize = 0;  // where floats become integers and back
    size_t tensors = 0;                   // observed
    size_t batches = 0;                   // at least this many for each of them
};

//! Throws Error, and writes no output, when the command fails, prints no ranges, or misses a tensor that is quantized.
ConvertReport convert_graph(const ConvertOptions& options);

//! The command that convert_graph runs for a logging graph at `graph`.
std::string calibration_command(const std::string& command, const std::filesystem::path& graph);

}  // namespace kilter::tensorflow
