// From an FP32 GraphDef to an INT8 GraphDef that stock TensorFlow runs: the flow of `kilter tf quantize` and of
// kilter.graph_converter. Ranges come from the user's own inference command, or from samples that kilter runs itself.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/calibration/calibrate.h"

namespace kilter::tensorflow {

//! How the ranges of several batches become one. direct: the 5th percentile of the minima and the 95th of the maxima (all of
//! them when there are fewer than twenty). ma: an average that moves half way to every batch. minmax: the extremes.
enum class BatchRanges { direct, ma, minmax };
//! "DIRECT", "MA", "MINMAX", in any case. Throws Error.
BatchRanges batch_ranges(std::string_view name);

struct ConvertOptions {
    std::filesystem::path input_graph;
    std::filesystem::path output_graph;        // empty: int8_final_fused_graph.pb beside the input
    std::vector<std::string> inputs, outputs;  // names of nodes
    std::vector<std::string> excluded_ops, excluded_nodes;
    bool per_channel = false;
    BatchRanges algorithm = BatchRanges::direct;
    //! A shell command that runs the graph whose path stands for "{}", or for the value of input_graph= in it. Without
    //! either, --input_graph=PATH is added.
    std::string calibration_command;
    //! Instead of a command: arrays for `inputs`, in their order, as often as there are any.
    SampleSource samples;
    //! Keeps fp32_optimized_graph.pb, int8_logged_graph.pb and int8_frozen_range_graph.pb beside the output.
    bool debug = false;
    std::filesystem::path fused_fp32;  // where the optimized FP32 graph is written too; empty: nowhere
    std::function<void(const std::string&)> progress;
};

struct ConvertedOperator {
    std::string name, op;
    bool integer = false;
    std::string note;  // what was fused into it, or why it stayed in floats
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
