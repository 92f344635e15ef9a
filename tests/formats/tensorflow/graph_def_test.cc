#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "formats/protobuf/message.h"
#include "formats/tensorflow/samples.h"
#include "formats/tensorflow/schema.h"
#include "kilter/base/error.h"

namespace kilter::tensorflow::graph_def_test {

using namespace testing;
using protobuf::Message;

TEST(GraphDef, EverythingSurvivesARoundTrip) {
    const TfGraph graph = read_text(rich_graph());
    const std::string once = write_graph_def_bytes(graph);
    EXPECT_EQ(once.size(), rich_graph().size());  // only the library moves to its place
    EXPECT_EQ(write_graph_def_bytes(read_text(once)), once);

    const TfNode& odd = *graph.find("odd");
    EXPECT_EQ(odd.attributes.get_ints("ints"), (std::vector<int64_t>{1, -2, int64_t{1} << 40}));
    EXPECT_EQ(odd.attributes.get_float("number"), 0.1F);
    EXPECT_EQ(odd.attributes.get_int("negative"), -5);
    EXPECT_EQ(odd.attributes.get_string("text"), "\x01\xFFtext");
    EXPECT_EQ(odd.attributes.get_list("bools").bools, (std::vector<bool>{true, false}));
    EXPECT_EQ(odd.attributes.get_list("_output_shapes").shapes[0].names[0], "batch");
    EXPECT_FALSE(odd.attributes.get_shape("anything").dims.has_value());
    EXPECT_EQ(odd.attributes.get_function("function").name, "twice");
    EXPECT_EQ(odd.inputs[1].text(), "^w");
    EXPECT_EQ(odd.data_inputs(), 1U);
    EXPECT_EQ(graph.find("sum")->inputs[0].port, 2);
    EXPECT_EQ(graph.find("x")->device, "/device:CPU:0");
    EXPECT_EQ(graph.bad_consumers, (std::vector<int64_t>{7, 300}));
    ASSERT_NE(graph.find_function("twice"), nullptr);
    EXPECT_EQ(graph.find_function("twice")->returns[0].second, "sum:z:0");
}

TEST(GraphDef, CopiesAreIndependent) {
    const TfGraph graph = read_text(rich_graph());
    TfGraph copy = graph;
    copy.rename(*copy.find("x"), "image");
    EXPECT_EQ(copy.find("enter")->inputs[0].node, "image");
    EXPECT_EQ(graph.find("enter")->inputs[0].node, "x");
    EXPECT_EQ(graph.find("image"), nullptr);
}

TEST(GraphDef, TensorsAreDecodedInAllTheirForms) {
    // One value stands for all the rest; none at all for zeros.
    Message dim;
    dim.integer(field::Dimension::size, 4);
    Message shape;
    shape.message(field::TensorShape::dim, dim);
    const auto tensor_of = [&](TfType type, uint32_t value_field, const std::vector<int64_t>& values) {
        Message message;
        message.integer(field::Tensor::dtype, type.code);
        message.message(field::Tensor::tensor_shape, shape);
        for (const int64_t value : values) message.integer(value_field, value);
        auto bytes = std::make_shared<const std::string>(message.str());
        return TfTensor::parse(*bytes, bytes).decode();
    };
    EXPECT_EQ(tensor_of(kInt32, field::Tensor::int_val, {7, -1}).to_ints(),
              (std::vector<int64_t>{7, -1, -1, -1}));
    EXPECT_EQ(tensor_of(kInt64, field::Tensor::int64_val, {}).to_ints(), (std::vector<int64_t>{0, 0, 0, 0}));
    EXPECT_EQ(tensor_of(kBool, field::Tensor::bool_val, {1, 0}).to_ints(),
              (std::vector<int64_t>{1, 0, 0, 0}));
    EXPECT_EQ(tensor_of(kQint8, field::Tensor::int_val, {-3}).dtype(), DType::i8);
    EXPECT_EQ(tensor_of(kHalf, field::Tensor::half_val, {0x3C00}).to_doubles(),
              (std::vector<double>{1, 1, 1, 1}));

    Message floats;
    floats.integer(field::Tensor::dtype, kFloat.code);
    floats.message(field::Tensor::tensor_shape, shape);
    floats.real(field::Tensor::float_val, 2.5F);
    auto bytes = std::make_shared<const std::string>(floats.str());
    EXPECT_EQ(TfTensor::parse(*bytes, bytes).decode().to_doubles(),
              (std::vector<double>{2.5, 2.5, 2.5, 2.5}));
}

TEST(GraphDef, RealGraphsAreWrittenBackAsTheyWere) {
    const char* data = std::getenv("KILTER_DATA");
    const std::filesystem::path folder =
        std::filesystem::path(data != nullptr ? data : "../shared/data") / "tensorflow";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "there are no graphs in " << folder;
    for (const char* name : {"cnn_cifar10.pb", "ssdlite_mobilenet_v2_coco.pb"}) {
        std::ifstream file(folder / name, std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        EXPECT_TRUE(write_graph_def_bytes(read_graph_def(folder / name)) == bytes) << name;
    }
}

TEST(GraphDef, ErrorsNameTheNode) {
    TfGraph graph;
    graph.add("a", "Relu", {"b"});
    EXPECT_EQ(reading_error(graph), "node 'a' (Relu): input 'b' does not exist");
    graph.add("b", "Relu", {"a"});
    EXPECT_NE(reading_error(graph).find("is part of a cycle"), std::string::npos);
    graph.find("b")->inputs = {"^c", "a"};
    graph.find("a")->inputs.clear();
    graph.add("c", "NoOp");
    EXPECT_EQ(reading_error(graph), "node 'b' (Relu): data input 'a' follows a control input");
    EXPECT_EQ(reading_error(std::string()), "the file is empty");
    EXPECT_EQ(reading_error(write_graph_def_bytes(graph) + write_graph_def_bytes(graph)),
              "two nodes are called 'a'");
    EXPECT_THROW(TfInput("a:b"), Error);
    EXPECT_THROW(TfInput("^a:1"), Error);
    EXPECT_THROW(TfInput(""), Error);
    TfAttributes attributes;
    attributes.set("T", int64_t{1});
    EXPECT_THROW(attributes.get_type("T"), Error);
    EXPECT_THROW(attributes.get_list("T"), Error);
}

TEST(GraphDef, ATensorThatClaimsAGigabyteCostsNothingUntilItIsUsed) {
    TfGraph graph;
    Message dim;
    dim.integer(field::Dimension::size, int64_t{1} << 40);
    Message shape;
    shape.message(field::TensorShape::dim, dim);
    Message message;
    message.integer(field::Tensor::dtype, kFloat.code);
    message.message(field::Tensor::tensor_shape, shape);
    message.real(field::Tensor::float_val, 1);
    auto bytes = std::make_shared<const std::string>(message.str());
    graph.add_constant("huge", TfTensor::parse(*bytes, bytes));
    const TfGraph again = read_text(write_graph_def_bytes(graph));
    EXPECT_EQ(write_graph_def_bytes(again), write_graph_def_bytes(graph));
    EXPECT_THROW(again.find("huge")->attributes.get_tensor("value").decode(), Error);
}

TEST(GraphDef, DepthIsBounded) {
    Message call;
    call.bytes(field::NameAttrList::name, "f");
    for (int depth = 0; depth < 10000; ++depth) {
        Message value;
        value.message(field::AttrValue::func, call);
        Message entry;
        entry.bytes(field::Entry::key, "g");
        entry.message(field::Entry::value, value);
        call = {};
        call.message(field::NameAttrList::attr, entry);
    }
    Message value;
    value.message(field::AttrValue::func, call);
    Message entry;
    entry.bytes(field::Entry::key, "f");
    entry.message(field::Entry::value, value);
    Message node;
    node.bytes(field::NodeDef::name, "a");
    node.bytes(field::NodeDef::op, "Call");
    node.message(field::NodeDef::attr, entry);
    Message graph;
    graph.message(field::GraphDef::node, node);
    EXPECT_NE(reading_error(graph.str()).find("nested more than"), std::string::npos);
}

}  // namespace kilter::tensorflow::graph_def_test
