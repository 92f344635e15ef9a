// tf.train.Example: the named features of a TFRecord.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kilter {

//! A feature has values of one of three kinds. Texts point into the record.
struct Feature {
    std::vector<std::string_view> bytes;
    std::vector<float> floats;
    std::vector<int64_t> ints;
};

using Example = std::map<std::string, Feature, std::less<>>;

//! Throws Error when the record is not a serialized Example.
Example parse_example(std::span<const std::byte> record);

}  // namespace kilter
