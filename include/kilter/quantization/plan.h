// Plan: for every operator that could be quantized, which precision it gets and how. A value: it can be printed, stored as
// JSON, compared and hashed. Overrides change a plan for the whole model, for operator types or for operators by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/quantization/capabilities.h"

namespace kilter {

struct ActivationChoice {
    DType dtype = DType::u8;
    Scheme scheme = Scheme::asym;
    RangeAlgorithm algorithm = RangeAlgorithm::minmax;
    double percentile = 99.99;  // only `percentile` reads it
    bool operator==(const ActivationChoice&) const = default;
};

struct WeightChoice {
    DType dtype = DType::i8;
    Granularity granularity = Granularity::per_channel;
    Scheme scheme = Scheme::sym;
    int bits = 8;
    bool operator==(const WeightChoice&) const = default;
};

struct OperatorPlan {
    std::string name;                  // of the operator in the optimized graph
    std::string op;                    // its type, as users know it
    std::vector<std::string> origins;  // operators of the source model that were fused into it
    Precision precision = Precision::int8;
    ActivationChoice activation;  // of the values it reads
    WeightChoice weights;
    bool operator==(const OperatorPlan&) const = default;
};

//! What an override changes; absent fields stay as they are.
struct Choice {
    std::optional<Precision> precision;
    std::optional<Scheme> scheme;  // of activations
    std::optional<RangeAlgorithm> algorithm;
    std::optional<double> percentile;
    std::optional<Granularity> granularity;  // of weights
    std::optional<int> bits;                 // of weights
};

//! One rule. `pattern` is an exact name, a glob ("layer1/*", '?' for one character) or a regular expression ("re:conv[0-9]+",
//! which must match the whole name); names of operators that were fused into others count as well.
struct Override {
    enum class Of { model, type, name };
    Of of = Of::model;
    std::string pattern;
    Choice choice;
};

//! full: every operator with an integer kernel is quantized. smart: convolutions, products and attention are; others only
//! between two of them, connected through quantizable operators. The words and their meaning are MXNet's.
enum class Mode { smart, full };
std::string_view name(Mode mode);
Mode mode(std::string_view name);

class Plan {
  public:
    Mode mode = Mode::smart;
    std::vector<OperatorPlan> operators;  // in the order of the graph

    const OperatorPlan* find(std::string_view name) const;
    OperatorPlan* find(std::string_view name);
    size_t count(Precision precision) const;

    //! Applies a rule. Throws Error when the pattern matches nothing or the operator cannot do what is asked; a rule for the
    //! whole model or for a type changes what can be changed and lets the rest be.
    void apply(const Override& rule);
    //! Every operator that `pattern` (a name, glob, regular expression or "type:Conv") matches. Throws when there is none.
    std::vector<OperatorPlan*> matching(std::string_view pattern);

    //! One line per operator.
    std::string text() const;
    std::string json() const;
    static Plan from_json(std::string_view json);  // throws Error that names unknown keys and bad values
    //! Equal plans have equal hashes, on every machine and in every version.
    uint64_t hash() const;
    bool operator==(const Plan&) const = default;
};

//! One line for every operator that differs; empty when none does.
std::string diff(const Plan& before, const Plan& after);

//! The plan before any override, for an optimized graph. Operators without a name are called by their output.
Plan default_plan(const Graph& graph, Mode mode = Mode::smart);

//! How plans name an operator.
std::string plan_name(const Node& node);

//! Overrides from JSON: {"model": {…}, "types": {"Conv": {…}}, "operators": {"pattern": {…}}} with the keys precision, scheme,
//! algorithm, percentile, weights (per-channel | per-tensor) and bits. Throws Error that names unknown keys.
std::vector<Override> parse_overrides(std::string_view json);

}  // namespace kilter
