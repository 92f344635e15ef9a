// Groups of values that share one parameter set because operators only move integers between them, and how every operator
// reads its inputs. The decisions of `quantize` before anything is changed. docs/arithmetic.md, "Which values are quantized".
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "quantization/cache.h"

namespace kilter {

//! How an operator that runs on integers reads one of its inputs.
enum class Reading {
    f32,      // as it is: masks, indices, operands that broadcast
    u8,       // activation
    s8,       // second operand of a product of two activations
    moved,    // data of a transparent operator
    operand,  // of a binary post-op: on integers when it comes from integers
    weights,
    bias,
};
Reading how_read(const Graph& graph, const Node& node, size_t index);

struct Group {
    std::vector<Value*> members;
    std::vector<Value*> roots;  // members that a transparent operator does not make
    bool quantized = false;     // somebody reads a member on integers
    Range range;
    QuantParams params;
    std::string decided_by;  // operator whose plan chose algorithm and scheme
};

class Groups {
  public:
    //! `planned` holds the operators that run on integers.
    using Planned = std::unordered_map<const Node*, const OperatorPlan*>;
    //! Decides which values are quantized, and with what. `lone_moves`: operators that only move data count as readers too. Operators whose values were never seen in calibration are removed
    //! from `planned`, with the reason in `reasons`.
    Groups(const Graph& graph, Planned& planned, const Stats& stats, bool lone_moves,
           std::unordered_map<const Node*, std::string>& reasons, QuantizationCache* cache);

    const Group& of(const Value* value) const { return groups_.at(index_.at(value)); }
    const std::vector<Group>& all() const { return groups_; }
    //! Made by an operator that can write integers itself (or moves them): every reader gets the integers then.
    bool made_on_integers(const Value* value) const;
    //! Does this input read integers?
    bool reads_integers(const Node& node, size_t index) const;

  private:
    Range range_of_value(const Value* value, const ValueStats& seen, const RangeOptions& options) const;
    bool build();  // false: an operator left `planned`, start again
    void join();
    bool is_transparent(const Node* node) const;

    const Graph& graph_;
    Planned& planned_;
    const Stats& stats_;
    bool lone_moves_;
    std::unordered_map<const Node*, std::string>& reasons_;
    QuantizationCache* cache_;  // may be null
    std::vector<Group> groups_;
    std::unordered_map<const Value*, size_t> index_;
};

}  // namespace kilter
