#include "formats/tensorflow/samples.h"

#include "formats/protobuf/message.h"
#include "formats/tensorflow/schema.h"
#include "kilter/base/error.h"

namespace kilter::tensorflow::testing {
namespace {

using protobuf::Message;

// A function y = x + x, field by field.
Message twice() {
    Message x;
    x.bytes(field::ArgDef::name, "x");
    x.integer(field::ArgDef::type, kFloat.code);
    Message y;
    y.bytes(field::ArgDef::name, "y");
    y.integer(field::ArgDef::type, kFloat.code);
    Message signature;
    signature.bytes(field::OpDef::name, "twice");
    signature.message(field::OpDef::input_arg, x);
    signature.message(field::OpDef::output_arg, y);
    Message type;
    type.integer(field::AttrValue::type, kFloat.code);
    Message attribute;
    attribute.bytes(field::Entry::key, "T");
    attribute.message(field::Entry::value, type);
    Message node;
    node.bytes(field::NodeDef::name, "sum");
    node.bytes(field::NodeDef::op, "AddV2");
    node.bytes(field::NodeDef::input, "x");
    node.bytes(field::NodeDef::input, "x");
    node.message(field::NodeDef::attr, attribute);
    Message returned;
    returned.bytes(field::Entry::key, "y");
    returned.bytes(field::Entry::value, "sum:z:0");
    Message function;
    function.message(field::FunctionDef::signature, signature);
    function.message(field::FunctionDef::node_def, node);
    function.message(field::FunctionDef::ret, returned);
    return function;
}

void add_loop(TfGraph& graph) {
    TfAttributes attributes;
    attributes.set("T", kFloat);
    graph.add("enter", "Enter", {"x"}, attributes).attributes.set("frame_name", "loop");
    graph.add("merge", "Merge", {"enter", "next"}, attributes).attributes.set("N", int64_t{2});
    graph.add("next", "NextIteration", {"merge"}, attributes);
}

}  // namespace

std::string rich_graph() {
    TfGraph graph;
    graph.producer_version = 1882;
    graph.min_consumer = 12;
    graph.bad_consumers = {7, 300};
    TfNode& x = graph.add("x", "Placeholder");
    x.device = "/device:CPU:0";
    x.attributes.set("dtype", kFloat);
    x.attributes.set("shape", TfShape({-1, 2}));
    graph.add_constant("w", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    graph.add_constant("names", Tensor::strings({2}, {"a", "b\n\"c\""}));
    graph.add_constant("bytes", TfTensor(Tensor::of<uint8_t>({3}, {1, 2, 3}), kQuint8));
    TfNode& product = graph.add("scope/product", "MatMul", {"x", "w", "^names"});
    product.attributes.set("T", kFloat);
    product.attributes.set("transpose_a", false);
    product.attributes.set("transpose_b", false);
    graph.add("split", "Split", {"bytes", "scope/product"}).attributes.set("num_split", int64_t{3});
    graph.add("sum", "AddN", {"split:2", "split", "split:1"}).attributes.set("N", int64_t{3});
    TfNode& odd = graph.add("odd", "NobodyKnowsThisOne", {"sum", "^w"});
    odd.attributes.set("nothing", TfValue());
    odd.attributes.set("text", "\x01\xFFtext");
    odd.attributes.set("number", 0.1F);
    odd.attributes.set("negative", int64_t{-5});
    odd.attributes.set("anything", TfShape());
    odd.attributes.set("placeholder", TfValue(TfPlaceholder{"T"}));
    TfList list;
    list.ints = {1, -2, int64_t{1} << 40};
    odd.attributes.set("ints", list);
    list = {};
    list.strings = {"a", ""};
    odd.attributes.set("strings", list);
    list = {};
    list.floats = {0.5F, 1e30F};
    odd.attributes.set("floats", list);
    list = {};
    list.bools = {true, false};
    odd.attributes.set("bools", list);
    list = {};
    list.types = {kFloat, kInt64};
    odd.attributes.set("types", list);
    list = {};
    list.shapes = {TfShape({1, -1}), TfShape(), TfShape({0})};
    list.shapes[0].names = {"batch", ""};
    odd.attributes.set("_output_shapes", list);
    list = {};
    list.tensors = {TfTensor(Tensor::scalar<int64_t>(4))};
    odd.attributes.set("tensors", list);
    TfFunctionCall call{"twice", {}};
    call.attributes.set("T", kFloat);
    odd.attributes.set("function", TfValue(std::make_shared<const TfFunctionCall>(call)));
    list = {};
    list.functions = {call, call};
    odd.attributes.set("functions", list);
    odd.attributes.set("empty", TfList());
    add_loop(graph);

    Message foreign;
    foreign.integer(99, 1);
    odd.foreign = foreign.str();
    graph.foreign = foreign.str();
    Message library;
    library.message(field::Library::function, twice());
    Message tail;
    tail.message(field::GraphDef::library, library);
    return write_graph_def_bytes(graph) + tail.str();
}

TfGraph read_text(const std::string& bytes) {
    return read_graph_def_bytes({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
}

std::string reading_error(const std::string& bytes) {
    try {
        read_text(bytes);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::string reading_error(const TfGraph& graph) { return reading_error(write_graph_def_bytes(graph)); }

}  // namespace kilter::tensorflow::testing
