#include "data/example.h"

#include <protozero/pbf_reader.hpp>

#include "base/fail.h"

namespace kilter {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Fields of another wire type than theirs are skipped, as unknown ones are.
constexpr auto kBytes = pbf_wire_type::length_delimited;

std::string_view view_of(const protozero::data_view& data) { return {data.data(), data.size()}; }

void read_texts(pbf_reader list, std::vector<std::string_view>& values) {
    while (list.next(1, kBytes)) values.push_back(view_of(list.get_view()));
}

void read_floats(pbf_reader list, std::vector<float>& values) {
    while (list.next(1)) {
        if (list.wire_type() == kBytes)
            for (const float value : list.get_packed_float()) values.push_back(value);
        else if (list.wire_type() == pbf_wire_type::fixed32)
            values.push_back(list.get_float());
        else
            list.skip();
    }
}

void read_ints(pbf_reader list, std::vector<int64_t>& values) {
    while (list.next(1)) {
        if (list.wire_type() == kBytes)
            for (const int64_t value : list.get_packed_int64()) values.push_back(value);
        else if (list.wire_type() == pbf_wire_type::varint)
            values.push_back(list.get_int64());
        else
            list.skip();
    }
}

Feature read_feature(pbf_reader message) {
    Feature feature;
    while (message.next()) {
        if (message.wire_type() != kBytes || message.tag() > 3) {
            message.skip();
            continue;
        }
        const protozero::pbf_tag_type tag = message.tag();
        const pbf_reader list = message.get_message();
        if (tag == 1) read_texts(list, feature.bytes);
        if (tag == 2) read_floats(list, feature.floats);
        if (tag == 3) read_ints(list, feature.ints);
    }
    return feature;
}

void read_entry(pbf_reader entry, Example& example) {
    std::string_view key;
    Feature feature;
    while (entry.next()) {
        if (entry.wire_type() == kBytes && entry.tag() == 1)
            key = view_of(entry.get_view());
        else if (entry.wire_type() == kBytes && entry.tag() == 2)
            feature = read_feature(entry.get_message());
        else
            entry.skip();
    }
    example.insert_or_assign(std::string(key), std::move(feature));
}

}  // namespace

Example parse_example(std::span<const std::byte> record) {
    Example example;
    try {
        pbf_reader message(reinterpret_cast<const char*>(record.data()), record.size());
        while (message.next(1, kBytes)) {
            pbf_reader features = message.get_message();
            while (features.next(1, kBytes)) read_entry(features.get_message(), example);
        }
    } catch (const protozero::exception& error) {
        fail("not a serialized tf.train.Example: {}", error.what());
    }
    return example;
}

}  // namespace kilter
