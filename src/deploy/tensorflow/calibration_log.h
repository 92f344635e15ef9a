// Ranges by way of a log: a graph that prints the extremes of its tensors while it runs, or how often values occur, and what
// the lines say.
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

//! The same for counts: "…__counts:[zeros][bins]". The bins are those of Histogram for the given extremes, negative ones (if there are any
//! values below zero) before positive ones. Throws Error when extremes are not finite.
void insert_counts(TfGraph& graph, const Ranges& extremes);

//! Statistics from the counts in `text`, which a graph printed that was made with the same extremes.
Stats parse_counts(std::string_view text, const Ranges& extremes);

//! Adds what the lines in `text` say; a line may hold several. Understands __requant_min_max, __min and __max.
void parse_log(std::string_view text, BatchLog& log);

//! One range per tensor. Throws Error when a tensor was not seen.
Ranges combine(const BatchLog& log, const std::vector<std::string>& tensors, BatchRanges how);

}  // namespace kilter::tensorflow
