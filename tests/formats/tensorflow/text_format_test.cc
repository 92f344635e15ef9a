#include <gtest/gtest.h>

#include "formats/tensorflow/samples.h"
#include "formats/tensorflow/text_format.h"
#include "kilter/base/error.h"

namespace kilter::tensorflow {
namespace {

using namespace testing;

std::string text_error(const std::string& text) {
    try {
        graph_def_from_text(text);
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(GraphDefText, EverythingWithANameSurvivesARoundTrip) {
    TfGraph graph = read_text(rich_graph());
    graph.foreign.clear();
    graph.find("odd")->foreign.clear();
    const std::string binary = write_graph_def_bytes(graph);
    const std::string text = graph_def_to_text(binary);
    EXPECT_TRUE(is_text_graph(text));
    EXPECT_EQ(write_graph_def_bytes(read_text(text)), binary);
    EXPECT_EQ(graph_def_to_text(write_graph_def_bytes(read_text(text))), text);
}

TEST(GraphDefText, AllFormsOfTheLanguageAreRead) {
    const TfGraph graph = read_text(
        "# a comment\n"
        "node: < name: 'a' op : \"Const\", device: \"one\" ' two' ;\n"
        "  attr { key: \"i\" value { i: -0x10 } } attr { key: \"s\" value { s: '\\x41\\102\\n\\\"' } }\n"
        "  attr { key: \"f\" value: { f: -inf } } attr { key: \"h\" value { f: 1.5e-3f } }\n"
        "  attr { key: \"t\" value { type: DT_QUINT8_REF } } attr { key: \"l\" value { list { i: [1, 2] i: 3 f: [] } } }\n"
        ">\n"
        "node { name: \"b\" op: \"NoOp\" input: [\"^a\"] }\n");
    const TfAttributes& attributes = graph.find("a")->attributes;
    EXPECT_EQ(graph.find("a")->device, "one two");
    EXPECT_EQ(attributes.get_string("s"), "AB\n\"");
    EXPECT_EQ(attributes.get_float("f"), -std::numeric_limits<float>::infinity());
    EXPECT_EQ(attributes.get_float("h"), 1.5e-3F);
    EXPECT_EQ(attributes.get_type("t").code, 112);
    EXPECT_EQ(attributes.get_ints("l"), (std::vector<int64_t>{1, 2, 3}));
    EXPECT_TRUE(graph.find("b")->inputs[0].control);
}

TEST(GraphDefText, IsToldFromBinary) {
    EXPECT_TRUE(is_text_graph("\n# a comment\n\n# another\nnode {"));
    EXPECT_TRUE(is_text_graph("versions: <"));
    EXPECT_FALSE(is_text_graph("nodes"));
    EXPECT_FALSE(is_text_graph("# only a comment"));
    // A first node of 35 bytes: the file begins with a newline and '#'.
    TfGraph graph;
    graph.add(std::string(27, 'n'), "NoOp");
    EXPECT_EQ(write_graph_def_bytes(graph).substr(0, 2), "\n#");
    EXPECT_EQ(read_text(write_graph_def_bytes(graph)).size(), 1U);
}

TEST(GraphDefText, ErrorsNameTheLine) {
    EXPECT_EQ(text_error("node {\n  nam: 'x'\n}"), "line 2: NodeDef has no field 'nam'");
    EXPECT_EQ(text_error("node {\n  name 'x'\n}"), "line 2: ':' is missing after 'name'");
    EXPECT_EQ(text_error("node {\n  name: 'x'"), "line 2: '}' is missing");
    EXPECT_EQ(text_error("node { name: 'x\n"), "line 1: a string does not end");
    EXPECT_EQ(text_error("node { name: x }"), "line 1: expected a string");
    EXPECT_EQ(text_error("version: 1.5"), "line 1: expected a whole number, found '1.5'");
    EXPECT_EQ(text_error("version: 99999999999999999999"),
              "line 1: expected a whole number, found '99999999999999999999'");
    EXPECT_EQ(text_error("node { attr { value { type: DT_NONE } } }"), "line 1: 'DT_NONE' is no type");
    EXPECT_EQ(text_error("node { name: '\\q' }"), "line 1: '\\q' is no escape");
    EXPECT_EQ(text_error("node { attr { value { b: maybe } } }"),
              "line 1: expected true or false, found 'maybe'");
}

TEST(GraphDefText, DepthIsBounded) {
    std::string text = "node { experimental_type { ";
    for (int depth = 0; depth < 100000; ++depth) text += "args { ";
    EXPECT_NE(text_error(text).find("nested more than"), std::string::npos);
}

}  // namespace
}  // namespace kilter::tensorflow
