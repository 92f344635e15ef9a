#include "formats/onnx/tensor_writer.h"

#include "formats/onnx/schema.h"
#include "graph/onnx_dtype.h"

namespace kilter::onnx {
namespace {

// Every element type can be used in place at this alignment, vector loads included.
constexpr size_t kAlignment = 64;

void add_entry(Message& message, std::string_view key, const std::string& value) {
    Message entry;
    entry.bytes(field::Entry::key, key);
    entry.bytes(field::Entry::value, value);
    message.message(field::Tensor::external_data, entry);
}

}  // namespace

size_t ExternalData::place(const Tensor& tensor) {
    const auto [entry, added] = known_.try_emplace({tensor.raw(), tensor.bytes()}, 0);
    if (!added) return entry->second;
    entry->second = (end_ + kAlignment - 1) / kAlignment * kAlignment;
    end_ = entry->second + tensor.bytes();
    tensors_.push_back({tensor, entry->second});
    return entry->second;
}

void ExternalData::write(OutputFile& file) const {
    const char padding[kAlignment] = {};
    size_t position = 0;
    for (const auto& [tensor, offset] : tensors_) {
        file.write(padding, offset - position);
        file.write(tensor.raw(), tensor.bytes());
        position = offset + tensor.bytes();
    }
}

Message write_tensor(const Tensor& tensor, std::string_view name, ExternalData* external) {
    Message message;
    for (const int64_t dim : tensor.shape()) message.integer(field::Tensor::dims, dim);
    message.integer(field::Tensor::data_type, onnx_code(tensor.dtype()));
    if (tensor.dtype() == DType::string)
        for (const std::string& text : tensor.as_strings()) message.bytes(field::Tensor::string_data, text);
    message.text(field::Tensor::name, name);
    if (external != nullptr && external->takes(tensor)) {
        add_entry(message, "location", external->location());
        add_entry(message, "offset", std::to_string(external->place(tensor)));
        add_entry(message, "length", std::to_string(tensor.bytes()));
        message.integer(field::Tensor::data_location, 1);
    } else if (tensor.dtype() != DType::string) {
        message.blob(field::Tensor::raw_data, tensor.raw(), tensor.bytes());
    }
    return message;
}

}  // namespace kilter::onnx
