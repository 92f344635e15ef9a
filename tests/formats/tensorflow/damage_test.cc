// Damaged graphs end in an Error or in a valid graph, never in anything else. The sanitizer build runs these too.
#include <gtest/gtest.h>

#include "formats/tensorflow/inline_functions.h"
#include "formats/tensorflow/lower.h"
#include "formats/tensorflow/samples.h"
#include "formats/tensorflow/summary.h"
#include "formats/tensorflow/text_format.h"
#include "kilter/base/error.h"
#include "kilter/passes/passes.h"

namespace kilter::tensorflow {
namespace {

using namespace testing;

// What a program does with a graph it was given. Any outcome but an Error or success is a crash.
bool survives(const std::string& bytes) {
    try {
        TfGraph graph = read_text(bytes);
        read_text(write_graph_def_bytes(graph));
        summarize(graph);
        inline_functions(graph);
        Model model = lower(graph);
        canonicalize(model);
        infer_types(model.graph);
        return true;
    } catch (const Error& error) {
        return std::string_view(error.what()).size() > 0;
    }
}

TEST(GraphDefDamage, TruncationAtEveryLength) {
    const std::string bytes = rich_graph();
    for (size_t length = 0; length <= bytes.size(); ++length)
        EXPECT_TRUE(survives(bytes.substr(0, length))) << length;
    const std::string text = graph_def_to_text(bytes);
    for (size_t length = 0; length <= text.size(); length += 3)
        EXPECT_TRUE(survives(text.substr(0, length))) << length;
}

TEST(GraphDefDamage, EveryByteFlipped) {
    const std::string bytes = rich_graph();
    for (size_t offset = 0; offset < bytes.size(); ++offset) {
        for (const int mask : {0x01, 0x04, 0x80, 0xFF}) {
            std::string damaged = bytes;
            damaged[offset] = static_cast<char>(damaged[offset] ^ mask);
            EXPECT_TRUE(survives(damaged)) << offset;
        }
    }
}

// Every attribute of every node of a network, replaced by something else.
TEST(GraphDefDamage, WrongAttributeTypes) {
    TfGraph graph;
    graph.add("x", "Placeholder").attributes.set("dtype", kFloat);
    graph.find("x")->attributes.set("shape", TfShape({1, 4, 4, 2}));
    graph.add_constant("w", Tensor::filled(DType::f32, {3, 3, 2, 4}, 0.5));
    TfList strides;
    strides.ints = {1, 2, 2, 1};
    TfAttributes attributes;
    attributes.set("T", kFloat);
    attributes.set("strides", strides);
    attributes.set("ksize", strides);
    attributes.set("padding", "SAME");
    attributes.set("data_format", "NHWC");
    graph.add("conv", "Conv2D", {"x", "w"}, attributes);
    graph.add("pool", "MaxPool", {"conv"}, attributes);
    graph.add("y", "Relu6", {"pool"}, attributes);
    ASSERT_TRUE(survives(write_graph_def_bytes(graph)));
    const std::vector<TfValue> others{TfValue(),
                                      TfValue(std::string("?")),
                                      TfValue(int64_t{-1}),
                                      TfValue(1.5F),
                                      TfValue(true),
                                      TfValue(TfType{99}),
                                      TfValue(TfShape()),
                                      TfValue(TfTensor(Tensor::scalar(1.0F))),
                                      TfValue(TfPlaceholder{"T"}),
                                      TfValue(std::make_shared<const TfList>())};
    for (const auto& node : graph.nodes()) {
        const TfAttributes original = node->attributes;
        for (const auto& [name, value] : original) {
            for (const TfValue& other : others) {
                node->attributes.set(name, other);
                EXPECT_TRUE(survives(write_graph_def_bytes(graph))) << node->name << " " << name;
                node->attributes = original;
            }
        }
    }
}

TEST(GraphDefDamage, FunctionsThatNeverEnd) {
    const auto graph_of = [](const std::string& body) {
        return "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"
               "node { name: 'y' op: 'f' input: 'x' }\n"
               "library { function { signature { name: 'f' input_arg { name: 'a' type: DT_FLOAT } "
               "output_arg { name: 'z' type: DT_FLOAT } }\n" +
               body + "} }";
    };
    const auto error_of = [&](const std::string& body) -> std::string {
        try {
            TfGraph graph = read_text(graph_of(body));
            inline_functions(graph);
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    };
    EXPECT_EQ(error_of("node_def { name: 'n' op: 'Neg' input: 'a' } ret { key: 'z' value: 'n:y:0' }"), "");
    EXPECT_NE(error_of("node_def { name: 'n' op: 'f' input: 'a' } ret { key: 'z' value: 'n:z:0' }")
                  .find("call each other more than"),
              std::string::npos);
    EXPECT_NE(error_of("node_def { name: 'n' op: 'Neg' input: 'b' } ret { key: 'z' value: 'n:y:0' }")
                  .find("does not exist in function 'f'"),
              std::string::npos);
    EXPECT_NE(error_of("node_def { name: 'n' op: 'Neg' input: 'a' }").find("does not return 'z'"),
              std::string::npos);
}

}  // namespace
}  // namespace kilter::tensorflow
