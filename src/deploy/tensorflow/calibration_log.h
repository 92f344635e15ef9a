// Ranges by way of a log: a graph that prints the extremes of its tensors while it runs, and what the lines say.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/tensorflow/islands.h"
#include "kilter/deploy/tensorflow.h"

namespace kilter::tensorflow {

//! What every batch showed, by tensor.
using BatchLog = std::map<std::string, std::vector<Interval>>;

//! Readers of the tensors wait for a Print, which writes ";NAME__print__;__requant_min_max:[min][max]" to stderr.
void insert_prints(TfGraph& graph, const std::vector<std::string>& tensors);

//! Adds what the lines in `text` say; a line may hold several. Understands __requant_min_max, __min and __max.
void parse_log(std::string_view text, BatchLog& log);

//! One range per tensor. Throws Error when a tensor was not seen.
Ranges combine(const BatchLog& log, const std::vector<std::string>& tensors, BatchRanges how);

}  // namespace kilter::tensorflow
