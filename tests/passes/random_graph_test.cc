// Random graphs through `optimize`: whatever the passes make of them, the outputs stay.
#include "passes/pass_test.h"

namespace kilter::random_graph_test {

using namespace testing;

// Grows a graph from values of a few ranks. Every value may be read again, and some are fetched.
class RandomGraph {
  public:
    explicit RandomGraph(unsigned seed) : random_(seed) {
        const Dim batch = pick(2) == 0 ? Dim("batch") : Dim(2);
        add(graph_.add_input("image", {DType::f32, {batch, 4, 5, 6}}));
        add(graph_.add_input("rows", {DType::f32, {batch, 5, 4}}));
        add(graph_.add_input("table", {DType::f32, {3, 4}}));
        for (int i = 0; i < 25; ++i) step();
        for (size_t i = 0; i < values_.size(); ++i)
            if (i + 3 >= values_.size() || pick(8) == 0)
                graph_.add_output(values_[i], "out" + std::to_string(i));
    }

    Graph& graph() { return graph_; }

  private:
    size_t pick(size_t count) { return random_() % count; }
    Value* any() { return values_[pick(values_.size())]; }
    Dims shape(const Value* value) const { return value->type.shape.value_or(Dims{}); }
    Shape numbers(const Value* value) const {
        Shape result;
        for (const Dim& dim : shape(value)) result.push_back(dim.known() ? dim.value : 3);
        return result;
    }

    void add(Value* value) {
        infer_types(graph_);
        if (value->type.shape) values_.push_back(value);
    }

    // A constant that broadcasts into `value`, with some axes of one.
    Value* constant_for(const Value* value) {
        Shape size;
        for (const Dim& dim : shape(value)) size.push_back(dim.known() && pick(3) != 0 ? dim.value : 1);
        size.erase(size.begin(), size.begin() + static_cast<int64_t>(pick(size.size() + 1)));
        return weights(graph_, size, static_cast<unsigned>(random_()), 0.5F, 1.5F);
    }

    Value* same_shaped(Value* value) {
        std::vector<Value*> found{value};
        for (Value* other : values_)
            if (shape(other) == shape(value)) found.push_back(other);
        return found[pick(found.size())];
    }

    void step() {
        Value* x = any();
        const auto rank = static_cast<int64_t>(shape(x).size());
        switch (pick(12)) {
            case 0:
            case 1:
                return unary(x);
            case 2:
            case 3:
                return binary(x);
            case 4:
                return transpose(x, rank);
            case 5:
                return reshape(x, rank);
            case 6:
            case 7:
                return convolution(x, rank);
            case 8:
            case 9:
                return product(x, rank);
            case 10:
                return reduce(x, rank);
            default:
                return move(x, rank);
        }
    }

    void unary(Value* x) {
        static constexpr std::string_view kOps[] = {"Relu",     "Sigmoid", "Tanh", "HardSwish",
                                                    "Identity", "Neg",     "Abs",  "Softplus"};
        Value* y = graph_.add(kOps[pick(std::size(kOps))], {x});
        add(y);
        if (pick(2) == 0) add(graph_.add("Mul", {x, y}));
    }

    void binary(Value* x) {
        static constexpr std::string_view kOps[] = {"Add", "Sub", "Mul", "Div", "Max", "Add"};
        const size_t op = pick(std::size(kOps));
        Value* other = pick(2) == 0 || kOps[op] == "Div" ? constant_for(x) : same_shaped(x);
        const bool swapped = kOps[op] != "Div" && pick(2) == 0;
        add(graph_.add(kOps[op], swapped ? std::vector{other, x} : std::vector{x, other}));
    }

    void transpose(Value* x, int64_t rank) {
        std::vector<int64_t> perm(static_cast<size_t>(rank));
        for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
        std::ranges::shuffle(perm, random_);
        std::vector<int64_t> back(perm.size());
        for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
        Value* y = graph_.add("Transpose", {x}, ints_attribute("perm", perm));
        add(y);
        if (pick(2) == 0) y = graph_.add("Relu", {y});
        if (pick(2) == 0) add(graph_.add("Transpose", {y}, ints_attribute("perm", back)));
    }

    void reshape(Value* x, int64_t rank) {
        switch (pick(4)) {
            case 0:
                return add(graph_.add(
                    "Unsqueeze",
                    {x, ints(graph_, {static_cast<int64_t>(pick(static_cast<size_t>(rank) + 1))})}));
            case 1:
                return add(graph_.add("Flatten", {x}));
            case 2:
                return add(graph_.add("Reshape", {x, ints(graph_, {-1})}));
            default:
                break;
        }
        if (!shape(x).empty() && shape(x)[0].known()) add(graph_.add("Reshape", {x, ints(graph_, {0, -1})}));
    }

    void convolution(Value* x, int64_t rank) {
        if (rank < 3 || rank > 5 || !shape(x)[1].known() || shape(x)[1].value == 0) return;
        const int64_t channels = shape(x)[1].value;
        const auto to = static_cast<int64_t>(1 + pick(4));
        Shape size{to, channels};
        for (int64_t i = 2; i < rank; ++i) size.push_back(1);
        std::vector<Value*> inputs{x, weights(graph_, size, static_cast<unsigned>(random_()))};
        if (pick(2) == 0) inputs.push_back(weights(graph_, {to}, static_cast<unsigned>(random_())));
        Value* y = graph_.add("Conv", inputs);
        add(y);
        if (pick(2) != 0) return;
        const auto seed = static_cast<unsigned>(random_());
        add(graph_.add("BatchNormalization",
                       {y, weights(graph_, {to}, seed), weights(graph_, {to}, seed + 1),
                        weights(graph_, {to}, seed + 2), weights(graph_, {to}, seed + 3, 0.5F, 1)}));
    }

    void product(Value* x, int64_t rank) {
        if (rank < 2 || !shape(x).back().known()) return;
        const int64_t depth = shape(x).back().value;
        if (pick(3) == 0) {
            std::vector<int64_t> perm(static_cast<size_t>(rank));
            for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
            std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
            Value* turned = graph_.add("Transpose", {same_shaped(x)}, ints_attribute("perm", perm));
            return add(graph_.add("Mul", {graph_.add("MatMul", {x, turned}), scalar(graph_, 0.1F)}));
        }
        const auto seed = static_cast<unsigned>(random_());
        Value* w = weights(graph_, {depth, 4}, seed, -0.5F, 0.5F);
        if (rank == 2 && pick(2) == 0)
            return add(graph_.add("Gemm", {x, w, weights(graph_, {4}, seed + 1)}, attribute("alpha", 0.5F)));
        add(graph_.add("Add", {graph_.add("MatMul", {x, w}), weights(graph_, {4}, seed + 1)}));
    }

    void reduce(Value* x, int64_t rank) {
        if (rank == 0) return;
        const auto axis = static_cast<int64_t>(pick(static_cast<size_t>(rank)));
        add(graph_.add("ReduceMean", {x, ints(graph_, {axis})},
                       attribute<int64_t>("keepdims", static_cast<int64_t>(pick(2)))));
    }

    void move(Value* x, int64_t rank) {
        if (rank == 0) return;
        const auto axis = static_cast<int64_t>(pick(static_cast<size_t>(rank)));
        if (pick(3) == 0) return add(graph_.add("Concat", {x, same_shaped(x)}, attribute("axis", axis)));
        if (pick(2) == 0)
            return add(graph_.add("Slice", {x, ints(graph_, {0}), ints(graph_, {2}), ints(graph_, {axis})}));
        std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
        for (int64_t i = 2; i < rank; ++i) pads[static_cast<size_t>(i)] = static_cast<int64_t>(pick(2));
        add(graph_.add("Pad", {x, ints(graph_, pads)}));
    }

    std::mt19937 random_;
    Graph graph_;
    std::vector<Value*> values_;
};

TEST(Optimize, KeepsTheFunctionOfRandomGraphs) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        RandomGraph random(seed);
        Graph& graph = random.graph();
        const std::vector<Tensor> inputs = random_inputs(graph, seed);
        const std::vector<Tensor> before = ref::run(graph, inputs);
        const std::string source = print(graph);
        optimize(graph);
        ASSERT_NO_THROW(verify(graph)) << "seed " << seed;
        expect_near(ref::run(graph, inputs), before, 1e-4);
        ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << "\n" << source << "\nbecame\n" << print(graph);
        const std::string once = print(graph);
        optimize(graph);
        ASSERT_EQ(print(graph), once) << "seed " << seed;
    }
}

}  // namespace kilter::random_graph_test
