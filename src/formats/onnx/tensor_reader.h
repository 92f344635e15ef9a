// TensorProto to Tensor. Raw and fixed-width data stay where they are in the mapped file; the rest is
// decoded.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "kilter/base/tensor.h"

namespace kilter::onnx {

struct NamedTensor {
    std::string name;
    std::string doc;
    std::string foreign;  // fields of the message that are not interpreted
    Tensor tensor;
};

class TensorReader {
  public:
    //! `keeper` keeps the messages alive; `directory` is where external data lies, absent when there is no
    //! such place.
    TensorReader(std::shared_ptr<const void> keeper, std::optional<std::filesystem::path> directory)
        : keeper_(std::move(keeper)), directory_(std::move(directory)) {}

    NamedTensor read(std::string_view message);
    //! SparseTensorProto, made dense. The name is that of its values.
    NamedTensor read_sparse(std::string_view message);
    //! Is the element type of this TensorProto one that kilter can hold?
    static bool is_known(std::string_view message);

  private:
    Tensor external(std::string_view message, DType dtype, Shape shape);

    std::shared_ptr<const void> keeper_;
    std::optional<std::filesystem::path> directory_;
    std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace kilter::onnx
