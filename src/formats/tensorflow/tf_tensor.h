// TfTensor: a TensorProto. Contents are decoded when somebody asks for them, so that a file with a tensor which claims
// to be huge can be looked at, and what nobody changes is written back as it was read.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "formats/protobuf/message.h"
#include "formats/tensorflow/tf_type.h"
#include "kilter/base/tensor.h"

namespace kilter::tensorflow {

class TfTensor {
  public:
    TfTensor() = default;
    TfTensor(Tensor tensor);  // NOLINT: tensors are tensors
    //! With the same bytes under another type: quint8 for u8.
    TfTensor(Tensor tensor, TfType type);
    //! Reads type and shape; `keeper` keeps the message alive.
    static TfTensor parse(std::string_view message, std::shared_ptr<const void> keeper);

    TfType type() const { return type_; }
    const TfShape& shape() const { return shape_; }
    //! The contents. Throws Error when they do not fit type and shape, or when kilter cannot hold the type.
    Tensor decode() const;
    //! Bytes of the contents, where the file holds fewer and one value is repeated; 0 otherwise.
    size_t filled_bytes() const;
    //! Adds the TensorProto to a message that this must outlive.
    void write(protobuf::Message& parent, uint32_t field) const;
    //! The serialized TensorProto it was read from; empty when it was made from a Tensor.
    std::string_view source() const { return source_; }

  private:
    TfType type_;
    TfShape shape_;
    Tensor tensor_;
    std::string_view source_;
    std::shared_ptr<const void> keeper_;
};

}  // namespace kilter::tensorflow
