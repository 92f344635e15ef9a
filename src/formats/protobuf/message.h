// Building protobuf messages in which large tensors are only referred to: a model is written without a second
// copy of its weights.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kilter::protobuf {

class Message {
  public:
    void integer(uint32_t field, int64_t value);
    void real(uint32_t field, float value);
    void bytes(uint32_t field, std::string_view value);
    //! Nothing at all when the text is empty: how optional strings are left out.
    void text(uint32_t field, std::string_view value);
    void message(uint32_t field, const Message& child);
    //! Memory that must stay valid until the message is written.
    void blob(uint32_t field, const void* data, size_t size);
    //! A bare number without a field: an element of a packed run.
    void varint(int64_t value);
    //! Fields that are serialized already.
    void verbatim(std::string_view fields) { text_ += fields; }

    size_t size() const { return text_.size() + blob_bytes_; }
    void visit(const std::function<void(const void*, size_t)>& piece) const;
    std::string str() const;

  private:
    struct Blob {
        size_t position;  // in text_: the blob comes before the character there
        const void* data;
        size_t size;
    };

    void tag(uint32_t field, uint32_t wire_type);

    std::string text_;
    std::vector<Blob> blobs_;
    size_t blob_bytes_ = 0;
};

}  // namespace kilter::protobuf
