// Sample: what one element of a dataset gives a model and what is known to be true of it. Batch: several of them, stacked.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kilter/base/tensor.h"

namespace kilter {

//! What is true of a sample, under names that datasets give and metrics ask for: "label" (a class, a number, a vector) for most;
//! detection: "boxes" [n, 4] (f32 y0 x0 y1 x1, pixels), "classes" [n], "image_id", …; question answering: "answers" (strings), ….
using Label = std::map<std::string, Tensor, std::less<>>;

struct Sample {
    std::vector<Tensor> inputs;  // without a batch axis, in the order of the model's inputs
    Label label;
    std::string name;   // for messages: a file, a record and its number
    int64_t index = 0;  // in its dataset; what random transforms draw depends on it and their seed only
};

struct Batch {
    std::vector<Tensor> inputs;  // the first axis counts samples
    std::vector<Label> labels;   // one per sample
    int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

}  // namespace kilter
