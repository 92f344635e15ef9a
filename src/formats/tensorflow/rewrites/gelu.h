// GELU as TensorFlow graphs spell it: a handful of element-wise operators on one tensor.
#pragma once

#include <optional>
#include <vector>

#include "formats/tensorflow/rewrites/affine.h"

namespace kilter::tensorflow {

struct Gelu {
    std::vector<TfNode*> nodes;  // all of it, in order
    bool exact = true;           // by erf; otherwise the approximation by tanh

    TfNode& last() const { return *nodes.back(); }
};

//! The GELU that reads `x`, when nobody else reads x or what lies between. Told by its values, not by its spelling.
std::optional<Gelu> gelu_behind(TfGraph& graph, const Readers& readers, const TfNode& x,
                                const Wanted& wanted);

}  // namespace kilter::tensorflow
