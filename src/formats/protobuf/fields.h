// Reading one protobuf message field by field. Every getter checks the wire type, so that a damaged file ends
// in an Error.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kilter::protobuf {

class Fields {
  public:
    explicit Fields(std::string_view message) : reader_(message.data(), message.size()) {}

    //! Moves to the next field; false at the end. The field must then be read, skipped or kept.
    bool next();
    uint32_t number() const { return reader_.tag(); }

    int64_t integer();
    float real();
    //! Contents of a string, bytes or message field: a view into the message.
    std::string_view view();
    std::string text() { return std::string(view()); }
    void skip();
    //! Appends the whole field, tag included, to `foreign`.
    void keep(std::string& foreign);

    //! One element or a packed run of them: both encodings of a repeated field are legal.
    void append_integers(std::vector<int64_t>& values);
    void append_reals(std::vector<float>& values);
    //! The bytes of one element or packed run of a fixed-width type (`width` 4 or 8).
    std::string_view fixed(size_t width);

  private:
    [[noreturn]] void wrong_type(std::string_view expected) const;

    protozero::pbf_reader reader_;
    const char* start_ = nullptr;  // of the current field, tag included
};

}  // namespace kilter::protobuf
