// What kilter can do with each type of operator, as one table: precisions, and for INT8 the element types, schemes,
// granularities and range algorithms of activations and weights. Plans are checked against it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/calibration/stats.h"
#include "kilter/graph/graph.h"
#include "kilter/quantization/params.h"

namespace kilter {

enum class Precision { int8, bf16, f32 };
std::string_view name(Precision precision);
Precision precision(std::string_view name);  // throws Error listing the names

//! How an operator behaves in an INT8 graph.
enum class Role {
    must,         // the reason to quantize: products and convolutions
    eligible,     // computes on integers, worth it between operators that do so anyway: additions, averages
    attached,     // activation that becomes part of the operator before it
    transparent,  // moves integers without changing them: input and output share one parameter set
    table,        // looks rows up: its weights are integers, what it returns is not
};

struct Capability {
    std::string_view
        op;  // type as users know it: "Conv" stands for kilter.Conv too, "MatMul" for Gemm and kilter.MatMul,
             // "Embedding" for a Gather of rows of a constant matrix
    Role role;
    std::vector<Precision> precisions;
    std::vector<DType> activation_dtypes;
    std::vector<Scheme> activation_schemes;
    std::vector<RangeAlgorithm> algorithms;
    std::vector<DType> weight_dtypes;  // empty: the operator has no weights
    std::vector<Granularity> granularities;
    int min_weight_bits = 0;
};

std::span<const Capability> capabilities();
//! Null for operators that always stay in floating point.
const Capability* find_capability(std::string_view op);
//! The type users know: Conv for kilter.Conv, MatMul for kilter.MatMul and Gemm, Embedding for a table's Gather, and so on.
std::string_view public_type(const Node& node);
//! The table as text: what `kilter quantize --capabilities` and the documentation print.
std::string capability_table();

}  // namespace kilter
