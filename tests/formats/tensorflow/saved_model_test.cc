// A SavedModel folder made by hand: one variable, read through a handle, restored by the graph's own operators.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "base/crc32c.h"
#include "engine/ref/executor.h"
#include "formats/onnx_samples.h"
#include "formats/tensorflow/bundle.h"
#include "formats/tensorflow/samples.h"
#include "formats/tensorflow/saved_model.h"
#include "formats/tensorflow/schema.h"
#include "formats/tensorflow/text_format.h"
#include "kilter/base/error.h"
#include "kilter/formats/load.h"

namespace kilter::tensorflow {
namespace {

using protobuf::Message;

void append_fixed(std::string& out, uint64_t value, size_t width) {
    out.append(reinterpret_cast<const char*>(&value), width);
}

// A block with its trailer; returns its handle.
std::string add_block(std::string& file, const std::string& entries, char compression = 0) {
    std::string block = entries;
    append_fixed(block, 0, 4);
    append_fixed(block, 1, 4);
    Message handle;
    handle.varint(static_cast<int64_t>(file.size()));
    handle.varint(static_cast<int64_t>(block.size()));
    block += compression;
    const uint32_t crc = crc32c(std::as_bytes(std::span(block.data(), block.size())));
    append_fixed(block, static_cast<uint32_t>(((crc >> 15U) | (crc << 17U)) + 0xa282ead8U), 4);
    file += block;
    return handle.str();
}

std::string entry(size_t shared, const std::string& key, const std::string& value) {
    Message lengths;
    for (const size_t length : {shared, key.size(), value.size()})
        lengths.varint(static_cast<int64_t>(length));
    return lengths.str() + key + value;
}

std::string bundle_entry(TfType type, int64_t dim, int64_t offset, int64_t size) {
    Message shape;
    Message one;
    one.integer(field::Dimension::size, dim);
    shape.message(field::TensorShape::dim, one);
    Message message;
    message.integer(1, type.code);
    message.message(2, shape);
    message.integer(4, offset);
    message.integer(5, size);
    return message.str();
}

std::string variables_index(char compression = 0) {
    Message header;
    header.integer(1, 1);
    std::string file;
    // The second key shares its first letter with the one before.
    const std::string data =
        add_block(file,
                  entry(0, "", header.str()) + entry(0, "vb", bundle_entry(kFloat, 2, 4, 8)) +
                      entry(1, "c", bundle_entry(kFloat, 1, 0, 4)),
                  compression);
    const std::string meta = add_block(file, "");
    const std::string index = add_block(file, entry(0, "z", data));
    std::string footer = meta + index;
    footer.resize(40, '\0');
    append_fixed(footer, 0xdb4775248b80fb57, 8);
    return file + footer;
}

const char* const kGraph =
    "node { name: 'serving_default_x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }"
    " attr { key: 'shape' value { shape { dim { size: 2 } } } } }\n"
    "node { name: 'handle' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
    "node { name: 'call' op: 'StatefulPartitionedCall' input: 'serving_default_x' input: 'handle'"
    " attr { key: 'f' value { func { name: 'serve' } } } }\n"
    "node { name: 'prefix' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } } }\n"
    "node { name: 'names' op: 'Const' attr { key: 'value' value { tensor { dtype: DT_STRING string_val: ['vc', 'vb']"
    " tensor_shape { dim { size: 2 } } } } } }\n"
    "node { name: 'restore' op: 'RestoreV2' input: 'prefix' input: 'names' input: 'names' }\n"
    "node { name: 'pass' op: 'Identity' input: 'restore:1' }\n"
    "node { name: 'assign' op: 'AssignVariableOp' input: 'handle' input: 'pass' }\n"
    "library { function { signature { name: 'serve' input_arg { name: 'a' type: DT_FLOAT }"
    " input_arg { name: 'v' type: DT_RESOURCE } output_arg { name: 'z' type: DT_FLOAT } }\n"
    " node_def { name: 'read' op: 'ReadVariableOp' input: 'v' }\n"
    " node_def { name: 'sum' op: 'AddV2' input: 'a' input: 'read:value:0' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    " ret { key: 'z' value: 'sum:z:0' } } }\n";

Message tensor_entry(const std::string& name, const std::string& tensor) {
    Message info;
    info.bytes(field::TensorInfo::name, tensor);
    info.integer(field::TensorInfo::dtype, kFloat.code);
    Message entry;
    entry.bytes(field::Entry::key, name);
    entry.message(field::Entry::value, info);
    return entry;
}

std::string saved_model(const std::string& signature) {
    Message parts;
    parts.message(field::Signature::inputs, tensor_entry("x", "serving_default_x:0"));
    parts.message(field::Signature::outputs, tensor_entry("y", "call:0"));
    Message named;
    named.bytes(field::Entry::key, signature);
    named.message(field::Entry::value, parts);
    Message info;
    info.bytes(field::MetaInfo::tags, "serve");
    Message meta;
    meta.message(field::MetaGraph::meta_info, info);
    meta.bytes(field::MetaGraph::graph_def, graph_def_from_text(kGraph));
    meta.message(field::MetaGraph::signature_def, named);
    Message file;
    file.integer(1, 1);
    file.message(field::SavedModel::meta_graphs, meta);
    return file.str();
}

class SavedModelFolder : public ::testing::Test {
  protected:
    void SetUp() override {
        std::filesystem::create_directories(folder() / "variables");
        write("saved_model.pb", saved_model("serving_default"));
        write("variables/variables.index", variables_index());
        const float values[] = {9, 10, 20};
        write("variables/variables.data-00000-of-00001",
              {reinterpret_cast<const char*>(values), sizeof values});
    }

    std::filesystem::path folder() const { return directory_.path() / "saved"; }
    void write(const std::string& name, const std::string& content) const {
        std::ofstream(folder() / name, std::ios::binary) << content;
    }
    std::string error(const std::string& signature = {}) const {
        try {
            load_model(folder(), {.signature = signature});
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    }

  private:
    onnx::testing::TemporaryDirectory directory_;
};

TEST_F(SavedModelFolder, BecomesAFrozenGraph) {
    const SavedModel saved = read_saved_model(folder());
    EXPECT_EQ(saved.inputs, (std::vector<std::string>{"x"}));
    EXPECT_EQ(saved.outputs, (std::vector<std::string>{"y"}));
    EXPECT_EQ(saved.graph.find("handle"), nullptr);
    ASSERT_NE(saved.graph.find("call/read"), nullptr);
    EXPECT_EQ(saved.graph.find("call/read")->op, "Const");

    const Model model = load_model(folder());
    EXPECT_EQ(model.graph.inputs()[0]->name(), "x");
    EXPECT_EQ(ref::run(model.graph, {Tensor::of<float>({2}, {1, 2})})[0].to_doubles(),
              (std::vector<double>{11, 22}));
    EXPECT_EQ(format_of(folder() / "saved_model.pb"), ModelFormat::saved_model);
}

TEST_F(SavedModelFolder, ErrorsSayWhatIsWrong) {
    EXPECT_NE(error("other").find("there is no signature 'other'"), std::string::npos);
    write("variables/variables.index", variables_index(1));
    EXPECT_NE(error().find("compressed"), std::string::npos);
    std::string index = variables_index();
    index[3] = static_cast<char>(index[3] ^ 1);
    write("variables/variables.index", index);
    EXPECT_NE(error().find("checksum"), std::string::npos);
    write("variables/variables.index", variables_index());
    write("variables/variables.data-00000-of-00001", "short");
    EXPECT_NE(error().find("variable 'vb' needs 8 bytes at 4, but the file has 5"), std::string::npos);
    std::filesystem::remove(folder() / "saved_model.pb");
    EXPECT_NE(error().find("there is no saved_model.pb in this folder"), std::string::npos);
}

TEST_F(SavedModelFolder, TheOnlySignatureNeedsNoName) {
    write("saved_model.pb", saved_model("predict"));
    EXPECT_EQ(load_model(folder()).graph.outputs()[0].name, "y");
}

TEST_F(SavedModelFolder, TruncatedFilesEndInAnError) {
    const std::string whole = saved_model("serving_default");
    for (size_t length = 0; length < whole.size(); length += 7) {
        write("saved_model.pb", whole.substr(0, length));
        EXPECT_THROW(load_model(folder()), Error) << length;
    }
    write("saved_model.pb", whole);
    const std::string index = variables_index();
    for (size_t length = 0; length < index.size(); ++length)
        EXPECT_THROW(read_string_table(index.substr(0, length)), Error) << length;
}

}  // namespace
}  // namespace kilter::tensorflow
