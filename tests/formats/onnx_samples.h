// Small ONNX models for the tests, built field by field so that they can be as odd as files in the wild.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/protobuf/message.h"
#include "kilter/formats/onnx.h"

namespace kilter::onnx::testing {

using protobuf::Message;

Message value_info(const std::string& name, int elem_type, const std::vector<int64_t>& dims,
                   const std::string& denotation = {});
Message node(const std::string& op, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {});
Message attribute_int(const std::string& name, int64_t value);
Message attribute_graph(const std::string& name, const Message& graph);
//! A tensor with its data in `raw_data`.
Message raw_tensor(const std::string& name, int data_type, const std::vector<int64_t>& dims,
                   const std::string& raw);

struct GraphParts {
    std::vector<Message> nodes, initializers, inputs, outputs, value_infos;
};
Message graph(const GraphParts& parts, const std::string& name = "g");
std::string model(const Message& graph, int64_t ir_version = 10, int64_t opset = 21);

//! Nearly everything at once: sub-graphs that capture, a function, odd element types, unknown operators and
//! fields.
std::string rich_model();

std::span<const std::byte> as_bytes(const std::string& text);
Model read_text(const std::string& text);
//! The message of the Error that reading throws; empty when it throws none.
std::string reading_error(const std::string& text);

//! A directory that is removed with everything in it at the end of the test.
class TemporaryDirectory {
  public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

void write_file(const std::filesystem::path& path, const std::string& text);

}  // namespace kilter::onnx::testing
