#include "formats/protobuf/fields.h"

#include <bit>
#include <cstring>

#include "base/fail.h"

namespace kilter::protobuf {
namespace {

using protozero::pbf_wire_type;

std::string_view type_name(pbf_wire_type type) {
    switch (type) {
        case pbf_wire_type::varint:
            return "an integer";
        case pbf_wire_type::fixed64:
            return "64 fixed bits";
        case pbf_wire_type::length_delimited:
            return "bytes";
        case pbf_wire_type::fixed32:
            return "32 fixed bits";
        default:
            return "an unknown encoding";
    }
}

// protozero says what went wrong with a class of exception; users get words.
template <class Read>
auto guarded(Read read) {
    try {
        return read();
    } catch (const protozero::end_of_buffer_exception&) {
        fail("the data ends in the middle of a field: the file is truncated or damaged");
    } catch (const protozero::exception& error) {
        fail("the data is damaged ({})", error.what());
    }
}

}  // namespace

bool Fields::next() {
    start_ = reader_.data().data();
    return guarded([&] { return reader_.next(); });
}

void Fields::wrong_type(std::string_view expected) const {
    fail("field {} holds {} where {} is expected: the file is damaged", number(),
         type_name(reader_.wire_type()), expected);
}

int64_t Fields::integer() {
    if (!reader_.has_wire_type(pbf_wire_type::varint)) wrong_type("an integer");
    return guarded([&] { return reader_.get_int64(); });
}

float Fields::real() {
    if (!reader_.has_wire_type(pbf_wire_type::fixed32)) wrong_type("a number");
    return guarded([&] { return reader_.get_float(); });
}

std::string_view Fields::view() {
    if (!reader_.has_wire_type(pbf_wire_type::length_delimited)) wrong_type("bytes");
    const protozero::data_view found = guarded([&] { return reader_.get_view(); });
    return {found.data(), found.size()};
}

void Fields::skip() {
    guarded([&] { reader_.skip(); });
}

void Fields::keep(std::string& foreign) {
    skip();
    foreign.append(start_, reader_.data().data());
}

void Fields::append_integers(std::vector<int64_t>& values) {
    if (reader_.has_wire_type(pbf_wire_type::varint)) {
        values.push_back(integer());
        return;
    }
    const std::string_view run = view();
    const char* data = run.data();
    const char* end = data + run.size();
    while (data != end)
        values.push_back(guarded([&] { return static_cast<int64_t>(protozero::decode_varint(&data, end)); }));
}

void Fields::append_reals(std::vector<float>& values) {
    const std::string_view run = fixed(sizeof(float));
    const size_t count = run.size() / sizeof(float);
    const size_t before = values.size();
    values.resize(before + count);
    if (count > 0) std::memcpy(values.data() + before, run.data(), run.size());
}

std::string_view Fields::fixed(size_t width) {
    static_assert(std::endian::native == std::endian::little,
                  "protobuf data is little-endian and used in place");
    const auto single = width == 4 ? pbf_wire_type::fixed32 : pbf_wire_type::fixed64;
    if (reader_.has_wire_type(single)) {
        const char* data = reader_.data().data();
        skip();
        return {data, width};
    }
    const std::string_view run = view();
    require(run.size() % width == 0, "field {} has {} bytes, not a multiple of {}: the file is damaged",
            number(), run.size(), width);
    return run;
}

}  // namespace kilter::protobuf
