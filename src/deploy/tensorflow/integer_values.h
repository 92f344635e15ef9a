// How the tensors between integer operators are stored. TensorFlow's kernels know no zero points: unsigned values start at
// zero, signed ones are symmetric. A signed value can still be stored as unsigned bytes with an offset, when all who read it
// can take the offset out again in their bias (docs/tensorflow.md, "Offsets").
#pragma once

#include <string>
#include <unordered_map>

#include "deploy/tensorflow/islands.h"

namespace kilter::tensorflow {

struct Stored {
    bool is_signed = false;
    double scale = 1.0;
    int zero_point = 0;  // of unsigned values

    //! What is added to a value before it is stored.
    double offset() const { return scale * zero_point; }
    //! What TensorFlow's min and max inputs say.
    float range_min() const { return is_signed ? -range_max() : 0.0F; }
    float range_max() const { return static_cast<float>(scale * (is_signed ? 127 : 255)); }
};

//! The decisions: which sums are fused after all, which passive nodes run on integers, how each tensor is stored.
class IntegerValues {
  public:
    //! Throws Error when a range is missing or not finite.
    IntegerValues(TfGraph& graph, Islands islands, const Ranges& ranges);

    const Islands& islands() const { return islands_; }
    //! Tensors that share their bytes' meaning (a pool and what it reads) have one root, by its name.
    const std::string& root(const std::string& tensor) const;
    const Stored& stored(const std::string& tensor) const { return stored_.at(root(tensor)); }
    //! Is the tensor needed in 8 bits?
    bool has_bytes(const std::string& tensor) const { return roots_.contains(tensor); }
    //! Sums that stay in floats, and why.
    const std::vector<std::pair<std::string, std::string>>& notes() const { return notes_; }

  private:
    void collect();
    void decide_signs();
    bool drop_sums_of_signed();
    bool drop_wide_concatenations();
    bool tolerates_offset(const std::string& root) const;
    Interval range_of(const std::string& tensor, int depth = 0) const;
    std::string find_root(const std::string& tensor) const;

    TfGraph& graph_;
    Islands islands_;
    const Ranges& ranges_;
    std::unordered_map<std::string, std::string> roots_;    // of every tensor that is needed in 8 bits
    std::unordered_map<std::string, bool> signed_;          // by root
    std::unordered_map<std::string, const Fused*> source_;  // by root, where an integer operator makes it
    std::unordered_map<std::string, Stored> stored_;
    std::vector<std::pair<std::string, std::string>> notes_;
};

}  // namespace kilter::tensorflow
