// Space: what a search may choose for every operator. Candidate: one choice for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kilter/quantization/quantize.h"

namespace kilter {

struct SpaceOperator {
    std::string name, op;
    Role role = Role::must;
    //! What it may be, most wanted first: integers, then bf16, then f32. Names and origins are those of the operator.
    std::vector<OperatorPlan> options;

    //! The first option with this precision; -1 when there is none.
    int first(Precision precision) const;
    int first_float() const;  // the fallback that costs least: f32, else bf16; -1 when it cannot fall back
};

//! What else a model can be quantized with: statistics of how many samples, which recipes.
struct Variant {
    std::string name;  // for reports, e.g. "equalization"
    int64_t samples = 0;
    Recipes recipes;
};

struct Candidate {
    std::vector<int> options;  // for each operator of the space, an index into its options
    int variant = 0;
    bool operator==(const Candidate&) const = default;
};

struct Space {
    std::vector<SpaceOperator> operators;  // in the order of the graph; each has at least one option
    std::vector<Variant> variants;         // the first is the one asked for
    Mode mode = Mode::smart;
    //! Variants that the user asked for come first; the others are there for strategies that know what to do with them.
    int asked_variants = 1;

    //! Everything at its first option.
    Candidate first() const;
    bool is_quantized(const Candidate& candidate, size_t index) const;
    size_t count(const Candidate& candidate, Precision precision) const;
    //! Operators that could fall back and have not.
    std::vector<size_t> quantized(const Candidate& candidate) const;
    Plan plan(const Candidate& candidate) const;
    //! "int8 51, f32 2": what a candidate is made of.
    std::string summary(const Candidate& candidate) const;
    //! The same candidate has the same key in every run of a study.
    uint64_t key(const Candidate& candidate) const;

    //! Candidates that treat all operators of a type alike, on integers only: uniform ones first, as Intel's tools order them.
    //! At most `limit` of them.
    std::vector<Candidate> model_wise(size_t limit = 256) const;
};

//! What a user allows: lists where a plan has one value. Empty lists allow what the defaults are.
struct SpaceRule {
    Override::Of of = Override::Of::model;
    std::string pattern;
    std::vector<Precision> precisions;
    std::vector<Scheme> schemes;
    std::vector<RangeAlgorithm> algorithms;
    std::vector<Granularity> granularities;
    std::vector<int> bits;
};

//! The space around a plan: its own choice first, then what the rules and the operators' capabilities allow. Rules for a name beat
//! those for a type, these those for the model. Operators that the plan keeps in floating point on purpose stay there, unless a rule
//! for their name says otherwise. Throws Error when a rule for a name leaves the operator nothing it can do, or a rule names none.
Space make_space(const Plan& plan, const std::vector<SpaceRule>& rules = {});

}  // namespace kilter
