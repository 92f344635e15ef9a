#include "formats/protobuf/message.h"

#include <protozero/buffer_string.hpp>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

namespace kilter::protobuf {
namespace {

using protozero::pbf_wire_type;

// Below this, copying is cheaper than one more piece to write.
constexpr size_t kSmallBlob = 4096;

}  // namespace

void Message::tag(uint32_t field, uint32_t wire_type) {
    protozero::add_varint_to_buffer(&text_, (static_cast<uint64_t>(field) << 3U) | wire_type);
}

void Message::integer(uint32_t field, int64_t value) {
    tag(field, static_cast<uint32_t>(pbf_wire_type::varint));
    varint(value);
}

void Message::varint(int64_t value) { protozero::add_varint_to_buffer(&text_, static_cast<uint64_t>(value)); }

void Message::real(uint32_t field, float value) {
    tag(field, static_cast<uint32_t>(pbf_wire_type::fixed32));
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void Message::bytes(uint32_t field, std::string_view value) {
    tag(field, static_cast<uint32_t>(pbf_wire_type::length_delimited));
    protozero::add_varint_to_buffer(&text_, value.size());
    text_ += value;
}

void Message::text(uint32_t field, std::string_view value) {
    if (!value.empty()) bytes(field, value);
}

void Message::message(uint32_t field, const Message& child) {
    tag(field, static_cast<uint32_t>(pbf_wire_type::length_delimited));
    protozero::add_varint_to_buffer(&text_, child.size());
    for (const Blob& blob : child.blobs_)
        blobs_.push_back({text_.size() + blob.position, blob.data, blob.size});
    text_ += child.text_;
    blob_bytes_ += child.blob_bytes_;
}

void Message::blob(uint32_t field, const void* data, size_t size) {
    if (size < kSmallBlob) return bytes(field, {static_cast<const char*>(data), size});
    tag(field, static_cast<uint32_t>(pbf_wire_type::length_delimited));
    protozero::add_varint_to_buffer(&text_, size);
    blobs_.push_back({text_.size(), data, size});
    blob_bytes_ += size;
}

void Message::visit(const std::function<void(const void*, size_t)>& piece) const {
    size_t done = 0;
    for (const Blob& blob : blobs_) {
        piece(text_.data() + done, blob.position - done);
        piece(blob.data, blob.size);
        done = blob.position;
    }
    piece(text_.data() + done, text_.size() - done);
}

std::string Message::str() const {
    std::string whole;
    whole.reserve(size());
    visit([&](const void* data, size_t size) { whole.append(static_cast<const char*>(data), size); });
    return whole;
}

}  // namespace kilter::protobuf
