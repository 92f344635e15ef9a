#include "passes/pass_test.h"

namespace kilter::recognize_gelu_test {

using namespace testing;

struct Spelling {
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, {2, Dim("length"), 5}});
    Value* constant(double number) { return scalar(graph, static_cast<float>(number)); }
    Value* mul(Value* a, Value* b) { return graph.add("Mul", {a, b}, {}, "mul"); }
    Value* mul(Value* a, double b) { return mul(a, constant(b)); }
    Value* add(Value* a, Value* b) { return graph.add("Add", {a, b}); }
    Value* erf(Value* argument) { return add(graph.add("Erf", {argument}), constant(1)); }
    Value* tanh(Value* argument) { return add(constant(1), graph.add("Tanh", {argument})); }
    Value* cube() { return graph.add("Pow", {x, constant(3)}); }
};

TEST(RecognizeGelu, KnowsTheErfForms) {
    for (int form = 0; form < 4; ++form) {
        Spelling s;
        Value* y = nullptr;
        if (form == 0) y = s.mul(s.mul(s.x, s.erf(s.graph.add("Div", {s.x, s.constant(M_SQRT2)}))), 0.5);
        if (form == 1) y = s.mul(s.mul(s.constant(0.5), s.x), s.erf(s.mul(s.x, M_SQRT1_2)));
        if (form == 2) y = s.mul(s.mul(s.erf(s.mul(s.constant(M_SQRT1_2), s.x)), 0.5), s.x);
        if (form == 3) y = s.graph.add("Div", {s.mul(s.erf(s.mul(s.x, M_SQRT1_2)), s.x), s.constant(2)});
        s.graph.add_output(y, "y");
        expect_keeps_function(s.graph, recognize_gelu);
        ASSERT_EQ(s.graph.nodes().size(), 1U) << form;
        EXPECT_EQ(s.graph.nodes()[0]->attributes.get_string("approximate"), "none");
    }
}

TEST(RecognizeGelu, KnowsTheTanhForms) {
    const double slope = std::sqrt(2 / M_PI);
    for (int form = 0; form < 4; ++form) {
        Spelling s;
        Value* y = nullptr;
        if (form == 0)
            y = s.mul(s.mul(s.x, 0.5), s.tanh(s.mul(s.add(s.x, s.mul(s.cube(), 0.044715)), slope)));
        if (form == 1) {
            Value* cube = s.mul(s.mul(s.x, s.x), s.x);
            y = s.mul(s.mul(s.x, s.tanh(s.mul(s.constant(slope), s.add(s.mul(cube, 0.044715), s.x)))), 0.5);
        }
        if (form == 2) {
            Value* factor = s.add(s.constant(1), s.mul(s.mul(s.x, 0.044715), s.x));
            y = s.mul(s.mul(s.tanh(s.mul(s.mul(s.x, slope), factor)), s.x), 0.5);
        }
        if (form == 3) {
            Value* sum = s.add(s.mul(s.x, slope), s.mul(s.cube(), slope * 0.044715));
            y = s.mul(s.tanh(sum), s.mul(s.constant(0.5), s.x));
        }
        s.graph.add_output(y, "y");
        expect_keeps_function(s.graph, recognize_gelu);
        ASSERT_EQ(s.graph.nodes().size(), 1U) << form;
        EXPECT_EQ(s.graph.nodes()[0]->attributes.get_string("approximate"), "tanh");
    }
}

TEST(RecognizeGelu, RemembersWhatItReplaced) {
    Spelling s;
    s.graph.add_output(
        s.mul(s.mul(s.x, s.erf(s.graph.add("Div", {s.x, s.constant(M_SQRT2)}, {}, "div"))), 0.5), "y");
    expect_keeps_function(s.graph, recognize_gelu);
    EXPECT_EQ(s.graph.nodes()[0]->name, "mul");
    EXPECT_EQ(s.graph.nodes()[0]->origins, std::vector<std::string>{"div"});
}

TEST(RecognizeGelu, LeavesOtherConstantsAndOtherReaders) {
    Spelling wrong;
    wrong.graph.add_output(wrong.mul(wrong.mul(wrong.x, wrong.erf(wrong.mul(wrong.x, 0.7))), 0.5), "a");
    wrong.graph.add_output(wrong.mul(wrong.mul(wrong.x, wrong.erf(wrong.mul(wrong.x, M_SQRT1_2))), 0.4), "b");
    Value* other = wrong.graph.add_input("other", {DType::f32, {2, Dim("length"), 5}});
    wrong.graph.add_output(wrong.mul(wrong.mul(other, wrong.erf(wrong.mul(wrong.x, M_SQRT1_2))), 0.5), "c");
    expect_untouched(wrong.graph, recognize_gelu);
    Spelling read;
    Value* inner = read.erf(read.mul(read.x, M_SQRT1_2));
    read.graph.add_output(read.mul(read.mul(read.x, inner), 0.5), "y");
    read.graph.add_output(inner, "inner");
    expect_untouched(read.graph, recognize_gelu);
}

}  // namespace kilter::recognize_gelu_test
