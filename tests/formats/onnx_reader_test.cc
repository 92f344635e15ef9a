#include <gtest/gtest.h>

#include "formats/onnx/schema.h"
#include "formats/onnx_samples.h"
#include "kilter/base/error.h"

namespace kilter::onnx::onnx_reader_test {

using namespace testing;

void expect_error(const std::string& text, const std::string& part) {
    const std::string message = reading_error(text);
    EXPECT_NE(message.find(part), std::string::npos) << "expected '" << part << "' in '" << message << "'";
}

// A model that returns its only initializer.
std::string constant_model(const Message& tensor) {
    return model(graph({.nodes = {node("Identity", {"w"}, {"y"})},
                        .initializers = {tensor},
                        .outputs = {value_info("y", 1, {})}}));
}

Tensor read_constant(const Message& tensor) {
    const Model read = read_text(constant_model(tensor));
    return *read.graph.constant(read.graph.find("w"));
}

Message typed_tensor(int data_type, const std::vector<int64_t>& dims) {
    Message message;
    for (const int64_t dim : dims) message.integer(field::Tensor::dims, dim);
    message.integer(field::Tensor::data_type, data_type);
    message.text(field::Tensor::name, "w");
    return message;
}

TEST(OnnxReader, ReadsTypedFieldsPackedAndUnpacked) {
    Message packed = typed_tensor(1, {2});
    packed.bytes(field::Tensor::float_data, std::string("\0\0\x80\x3F\0\0\0\x40", 8));
    EXPECT_TRUE(identical(read_constant(packed), Tensor::of<float>({2}, {1, 2})));

    Message unpacked = typed_tensor(1, {2});
    unpacked.real(field::Tensor::float_data, 1);
    unpacked.real(field::Tensor::float_data, 2);
    EXPECT_TRUE(identical(read_constant(unpacked), Tensor::of<float>({2}, {1, 2})));

    Message i64 = typed_tensor(7, {3});
    i64.bytes(field::Tensor::int64_data, std::string("\x05\x07", 2));
    i64.integer(field::Tensor::int64_data, -1);
    EXPECT_TRUE(identical(read_constant(i64), Tensor::of<int64_t>({3}, {5, 7, -1})));

    Message i8 = typed_tensor(3, {2});
    i8.integer(field::Tensor::int32_data, -3);
    i8.integer(field::Tensor::int32_data, 127);
    EXPECT_TRUE(identical(read_constant(i8), Tensor::of<int8_t>({2}, {-3, 127})));

    Message f16 = typed_tensor(10, {1});
    f16.integer(field::Tensor::int32_data, 0x3C00);
    EXPECT_EQ(read_constant(f16).to_doubles(), std::vector<double>{1.0});

    Message u64 = typed_tensor(13, {1});
    u64.integer(field::Tensor::uint64_data, -1);
    EXPECT_TRUE(identical(read_constant(u64), Tensor::of<uint64_t>({1}, {~uint64_t{0}})));

    Message i4 = typed_tensor(22, {3});
    i4.integer(field::Tensor::int32_data, 0x21);
    i4.integer(field::Tensor::int32_data, 0x0F);
    EXPECT_EQ(read_constant(i4).to_ints(), (std::vector<int64_t>{1, 2, -1}));

    Message flag = typed_tensor(9, {2});
    flag.integer(field::Tensor::int32_data, 0);
    flag.integer(field::Tensor::int32_data, 7);
    EXPECT_EQ(read_constant(flag).to_ints(), (std::vector<int64_t>{0, 1}));
}

TEST(OnnxReader, LeavesWeightsInTheMappedFile) {
    const TemporaryDirectory directory;
    write_file(directory / "m.onnx",
               constant_model(raw_tensor("w", 1, {2}, std::string("\0\0\x80\x3F\0\0\0\x40", 8))));
    const Model read_model = read(directory / "m.onnx");
    const Tensor* tensor = read_model.graph.constant(read_model.graph.find("w"));
    EXPECT_FALSE(tensor->writable());
    // The file may go; the mapping stays.
    std::filesystem::remove(directory / "m.onnx");
    EXPECT_EQ(tensor->as<float>()[1], 2.0F);
}

TEST(OnnxReader, SaysWhatIsWrongWithATensor) {
    expect_error(constant_model(raw_tensor("w", 1, {2}, "abc")),
                 "tensor 'w': has 3 bytes of data, but 2 elements of f32 need 8");
    expect_error(constant_model(raw_tensor("w", 1, {-2}, "")), "negative dimension");
    expect_error(constant_model(raw_tensor("w", 1, {int64_t{1} << 40, int64_t{1} << 40}, "")),
                 "too many elements");
    expect_error(constant_model(raw_tensor("w", 1, {int64_t{1} << 61}, "")), "tensor 'w'");
    expect_error(constant_model(raw_tensor("w", 0, {1}, "")), "element type 0");
    expect_error(constant_model(raw_tensor("w", 77, {1}, "")), "element type 77");
    expect_error(constant_model(typed_tensor(7, {2})), "has 0 bytes");
    expect_error(constant_model(typed_tensor(8, {2})), "has 0 strings");
    Message segment = typed_tensor(1, {1});
    segment.bytes(field::Tensor::segment, "");
    expect_error(constant_model(segment), "segments");
}

Message external_tensor(const std::string& location, const std::string& offset, const std::string& length) {
    Message message = typed_tensor(1, {2});
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
             {"location", location}, {"offset", offset}, {"length", length}}) {
        if (value.empty() && key != "location") continue;
        Message entry;
        entry.bytes(field::Entry::key, key);
        entry.bytes(field::Entry::value, value);
        message.message(field::Tensor::external_data, entry);
    }
    message.integer(field::Tensor::data_location, 1);
    return message;
}

std::string external_error(const TemporaryDirectory& directory, const Message& tensor) {
    write_file(directory / "m.onnx", constant_model(tensor));
    try {
        read(directory / "m.onnx");
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(OnnxReader, MapsExternalData) {
    const TemporaryDirectory directory;
    write_file(directory / "w.bin", std::string("1234\0\0\x80\x3F\0\0\0\x40", 12));
    write_file(directory / "m.onnx", constant_model(external_tensor("w.bin", "4", "8")));
    const Model found = read(directory / "m.onnx");
    EXPECT_TRUE(identical(*found.graph.constant(found.graph.find("w")), Tensor::of<float>({2}, {1, 2})));
}

TEST(OnnxReader, RefusesExternalDataThatIsMissingTooShortOrElsewhere) {
    const TemporaryDirectory directory;
    write_file(directory / "w.bin", "12345678");
    const auto expect = [&](const Message& tensor, const std::string& part) {
        const std::string message = external_error(directory, tensor);
        EXPECT_NE(message.find(part), std::string::npos)
            << "expected '" << part << "' in '" << message << "'";
        EXPECT_NE(message.find("m.onnx: tensor 'w'"), std::string::npos) << message;
    };
    expect(external_tensor("gone.bin", "", ""), "gone.bin: cannot open the file");
    expect(external_tensor("w.bin", "1", ""),
           "8 bytes at offset 1 of 'w.bin' are needed, but the file has 8 bytes");
    expect(external_tensor("w.bin", "18446744073709551615", ""), "offset");
    expect(external_tensor("w.bin", "-1", ""), "offset must be a number");
    expect(external_tensor("w.bin", "0", "4"), "has 4 bytes of data");
    expect(external_tensor("/etc/passwd", "", ""), "does not name a file in the model's directory");
    expect(external_tensor("../w.bin", "", ""), "does not name a file in the model's directory");
    expect(external_tensor("a/../../w.bin", "", ""), "does not name a file in the model's directory");
    expect(external_tensor("", "", ""), "does not name a file");
    expect(external_tensor(".", "", ""), "directory");
    EXPECT_EQ(external_error(directory, external_tensor("w.bin", "", "")), "");
    EXPECT_NE(reading_error(constant_model(external_tensor("w.bin", "", ""))).find("given as bytes"),
              std::string::npos);
}

TEST(OnnxReader, MakesSparseInitializersDense) {
    const auto sparse = [](const std::vector<int64_t>& dims, const std::string& index) {
        Message message;
        message.message(field::SparseTensor::values, raw_tensor("w", 2, {1}, "\x07"));
        message.message(field::SparseTensor::indices, raw_tensor("", 7, {1}, index));
        for (const int64_t dim : dims) message.integer(field::SparseTensor::dims, dim);
        Message whole =
            graph({.nodes = {node("Identity", {"w"}, {"y"})}, .outputs = {value_info("y", 2, {})}});
        whole.message(field::Graph::sparse_initializer, message);
        return model(whole);
    };
    const Model found = read_text(sparse({2, 2}, std::string("\x02\0\0\0\0\0\0\0", 8)));
    EXPECT_TRUE(
        identical(*found.graph.constant(found.graph.find("w")), Tensor::of<uint8_t>({2, 2}, {0, 0, 7, 0})));
    expect_error(sparse({2, 2}, std::string("\x04\0\0\0\0\0\0\0", 8)), "index 4 is outside of 2x2");
    expect_error(sparse({1 << 20, 1 << 20}, std::string(8, '\0')), "would need");
}

TEST(OnnxReader, SortsNodesAndReportsCycles) {
    const Model sorted =
        read_text(model(graph({.nodes = {node("Neg", {"a"}, {"y"}), node("Relu", {"x"}, {"a"})},
                               .inputs = {value_info("x", 1, {2})},
                               .outputs = {value_info("y", 1, {2})}})));
    EXPECT_EQ(sorted.graph.nodes()[0]->op(), "Relu");
    expect_error(model(graph({.nodes = {node("Neg", {"a"}, {"y"}), node("Relu", {"y"}, {"a"})},
                              .outputs = {value_info("y", 1, {2})}})),
                 "cycle through operator 'Neg_node' (Neg)");
    // A branch that reads what its own If computes.
    const Message branch =
        graph({.nodes = {node("Relu", {"y"}, {"r"})}, .outputs = {value_info("r", 1, {})}});
    expect_error(model(graph({.nodes = {node("If", {"c"}, {"y"}, {attribute_graph("then_branch", branch)})},
                              .inputs = {value_info("c", 9, {})},
                              .outputs = {value_info("y", 1, {})}})),
                 "cycle");
}

TEST(OnnxReader, NamesTheOperatorWhoseInputIsMissing) {
    expect_error(
        model(graph({.nodes = {node("Relu", {"nowhere"}, {"y"})}, .outputs = {value_info("y", 1, {})}})),
        "operator 'Relu_node' (Relu): input 'nowhere' is defined nowhere");
    expect_error(model(graph({.outputs = {value_info("y", 1, {})}})), "output 'y' is computed nowhere");
}

TEST(OnnxReader, RefusesNamesDefinedTwice) {
    const Message x = value_info("x", 1, {2});
    const Message w = raw_tensor("x", 2, {1}, "a");
    expect_error(model(graph({.inputs = {x, x}})), "'x' is defined twice");
    expect_error(model(graph({.initializers = {w, w}})), "'x' is defined twice");
    expect_error(model(graph({.initializers = {w}, .inputs = {x, x}})), "'x' is defined twice");
    expect_error(model(graph({.nodes = {node("Relu", {"x"}, {"x"})}, .inputs = {x}})),
                 "'x' is defined twice");
    expect_error(model(graph({.nodes = {node("Relu", {}, {"a", "a"})}})), "'a' is defined twice");
    expect_error(
        model(graph({.nodes = {node("Relu", {}, {"a"}, {attribute_int("k", 1), attribute_int("k", 2)})}})),
        "attribute 'k': is given twice");
}

TEST(OnnxReader, TakesInitializersListedAsInputsForConstants) {
    const std::string text = model(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                          .initializers = {raw_tensor("w", 1, {1}, "abcd")},
                                          .inputs = {value_info("w", 1, {1}), value_info("x", 1, {1})},
                                          .outputs = {value_info("y", 1, {1})}}),
                                   3, 9);
    const Model found = read_text(text);
    ASSERT_EQ(found.graph.inputs().size(), 1U);
    EXPECT_TRUE(found.graph.find("w")->is_constant());
    EXPECT_TRUE(found.graph.find("w")->listed_as_input);
}

TEST(OnnxReader, DerivesTheTypeOfUntypedAttributes) {
    Message ints;
    ints.text(field::Attribute::name, "axes");
    ints.integer(field::Attribute::ints, 2);
    ints.integer(field::Attribute::ints, -1);
    Message text;
    text.text(field::Attribute::name, "mode");
    text.bytes(field::Attribute::s, "same");
    const Model found = read_text(model(graph({.nodes = {node("Old", {}, {"y"}, {ints, text})}}), 1, 1));
    const Attributes& attributes = found.graph.nodes()[0]->attributes;
    EXPECT_EQ(attributes.get_ints("axes"), (std::vector<int64_t>{2, -1}));
    EXPECT_EQ(attributes.get_string("mode"), "same");
}

TEST(OnnxReader, CapturesOuterValuesThroughEveryLevel) {
    const Model found = read_text(rich_model());
    const Node* outer = nullptr;
    for (const auto& candidate : found.graph.nodes())
        if (candidate->op() == "If") outer = candidate.get();
    ASSERT_NE(outer, nullptr);
    const Graph* middle = outer->subgraphs()[1];
    const Graph* deep = middle->nodes()[0]->subgraphs()[0];
    const Value* relu = deep->find("outer_relu");
    ASSERT_NE(relu, nullptr);
    ASSERT_NE(relu->outer(), nullptr);
    EXPECT_EQ(relu->outer(), middle->find("outer_relu"));
    EXPECT_EQ(relu->outer()->outer(), found.graph.find("outer_relu"));
    EXPECT_EQ(relu->outer()->outer()->users().front(), outer);
}

TEST(OnnxReader, LimitsTheDepthOfSubGraphs) {
    Message body = graph({.nodes = {node("Relu", {"x"}, {"y"})}});
    const auto nested = [&](int depth) {
        Message inner = body;
        for (int i = 0; i < depth; ++i)
            inner = graph({.nodes = {node("If", {"x"}, {"y"}, {attribute_graph("g", inner)})}});
        inner.message(field::Graph::input, value_info("x", 9, {}));
        return model(inner);
    };
    EXPECT_EQ(reading_error(nested(kMaxGraphDepth)), "");
    expect_error(nested(kMaxGraphDepth + 1), "nested more than 64 deep");
    expect_error(nested(2000), "nested more than 64 deep");
}

TEST(OnnxReader, ReportsWrongWireTypesAndMissingGraphs) {
    Message wrong;
    wrong.integer(field::Model::graph, 3);
    expect_error(wrong.str(), "field 7 holds an integer where bytes is expected");
    Message text;
    text.text(field::Model::ir_version, "four");
    expect_error(text.str(), "field 1 holds bytes where an integer is expected");
    expect_error("", "the file is empty");
    expect_error(std::string("\x08\x0A", 2), "holds no graph");
    expect_error("this is no model", "model in memory: ");
}

TEST(OnnxReader, NamesFilesItCannotRead) {
    const TemporaryDirectory directory;
    const auto message = [](const std::filesystem::path& path) -> std::string {
        try {
            read(path);
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    };
    write_file(directory / "empty.onnx", "");
    EXPECT_NE(message(directory / "empty.onnx").find("empty.onnx: the file is empty"), std::string::npos);
    EXPECT_NE(message(directory / "no.onnx").find("no.onnx: cannot open the file: No such file"),
              std::string::npos);
    EXPECT_NE(message(directory.path()).find("found a directory"), std::string::npos);
    EXPECT_NE(message("/dev/null").find("expected a regular file"), std::string::npos);
}

}  // namespace kilter::onnx::onnx_reader_test
