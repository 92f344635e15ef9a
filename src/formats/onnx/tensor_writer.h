// Tensor to TensorProto: raw bytes inside the message, or in an external file beside the model.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "formats/protobuf/message.h"
#include "kilter/base/tensor.h"

namespace kilter::onnx {

using protobuf::Message;

//! Lays out the external file. Tensors that share their memory are stored once.
class ExternalData {
  public:
    ExternalData(std::string location, size_t threshold)
        : location_(std::move(location)), threshold_(threshold) {}

    //! Whether tensors of attributes go outside too. Few runtimes read those, so only a model too large for
    //! one file needs it.
    bool with_attributes = false;

    const std::string& location() const { return location_; }
    bool takes(const Tensor& tensor) const {
        return tensor.dtype() != DType::string && tensor.bytes() >= threshold_;
    }
    size_t place(const Tensor& tensor);  // its offset
    bool empty() const { return tensors_.empty(); }
    void write(OutputFile& file) const;

  private:
    struct Placed {
        Tensor tensor;
        size_t offset;
    };

    std::string location_;
    size_t threshold_;
    std::vector<Placed> tensors_;
    std::map<std::pair<const void*, size_t>, size_t> known_;
    size_t end_ = 0;
};

//! `external` may be null. `tensor` must outlive the message.
Message write_tensor(const Tensor& tensor, std::string_view name, ExternalData* external);

}  // namespace kilter::onnx
