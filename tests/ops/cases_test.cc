// Single-operator cases as data: cases.inc, made from the node tests of the `onnx` package by make_cases.py.
// A case is lines of text: `case NAME OPERATOR`, `attr NAME KIND VALUE`, then `in` and `out` lines with a
// tensor
// (`TYPE SHAPE: NUMBERS`) or `-` where an optional one is absent.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <sstream>

#include "base/convert.h"
#include "engine/ref/executor.h"
#include "engine/stage.h"
#include "kilter/base/error.h"
#include "kilter/graph/graph.h"
#include "ops/op.h"

namespace kilter::cases_test {

const char* const kCases[] = {
#include "ops/cases.inc"
};

struct Case {
    std::string name, op;
    Attributes attributes;
    std::vector<Tensor> inputs, outputs;  // empty where absent
};

double parse_number(const std::string& word) { return std::strtod(word.c_str(), nullptr); }

Tensor parse_tensor(std::istringstream& line) {
    std::string dtype;
    std::string dims;
    line >> dtype;
    if (dtype == "-") return {};
    line >> dims;
    Shape shape;
    dims.pop_back();  // the colon
    if (dims != "scalar")
        for (std::istringstream parts(dims); std::getline(parts, dims, 'x');)
            shape.push_back(std::stoll(dims));
    const DType wanted = parse_dtype(dtype).value();
    // Through a wide type and a conversion without saturation, so that infinities stay what they are.
    const DType wide = wanted == DType::u64 ? DType::u64 : is_integer(wanted) ? DType::i64 : DType::f64;
    Tensor tensor(wide, shape);
    std::string word;
    for (int64_t i = 0; i < tensor.size() && line >> word; ++i) {
        if (wide == DType::u64)
            tensor.as_mutable<uint64_t>()[static_cast<size_t>(i)] = std::stoull(word);
        else if (wide == DType::i64)
            tensor.as_mutable<int64_t>()[static_cast<size_t>(i)] = std::stoll(word);
        else
            tensor.as_mutable<double>()[static_cast<size_t>(i)] = parse_number(word);
    }
    return convert(tensor, wanted, false);
}

AttributeValue parse_attribute(const std::string& kind, std::istringstream& line) {
    if (kind == "tensor") return parse_tensor(line);
    std::string word;
    std::vector<std::string> words;
    while (line >> word) words.push_back(word);
    std::vector<int64_t> ints;
    std::vector<float> floats;
    for (const std::string& entry : words) {
        if (kind == "ints") ints.push_back(std::stoll(entry));
        if (kind == "floats") floats.push_back(static_cast<float>(parse_number(entry)));
    }
    if (kind == "ints") return ints;
    if (kind == "floats") return floats;
    if (kind == "int") return static_cast<int64_t>(std::stoll(words.at(0)));
    if (kind == "float") return static_cast<float>(parse_number(words.at(0)));
    return words.empty() ? std::string() : words[0];
}

Case parse_case(const std::string& text) {
    Case found;
    std::istringstream lines(text);
    for (std::string row; std::getline(lines, row);) {
        std::istringstream line(row);
        std::string tag;
        std::string name;
        line >> tag;
        if (tag == "case") {
            line >> found.name >> found.op;
        } else if (tag == "attr") {
            std::string kind;
            line >> name >> kind;
            found.attributes.set(name, parse_attribute(kind, line));
        } else {
            (tag == "in" ? found.inputs : found.outputs).push_back(parse_tensor(line));
        }
    }
    return found;
}

// Constants give shape rules everything there is to know; inputs only types. The first `given` are inputs.
constexpr size_t kAll = 1000;

Graph graph_of(const Case& item, size_t given) {
    Graph graph;
    std::vector<Value*> inputs;
    std::vector<Value*> outputs;
    for (const Tensor& tensor : item.inputs) {
        if (tensor.empty())
            inputs.push_back(nullptr);
        else if (inputs.size() >= given)
            inputs.push_back(graph.add_constant(tensor));
        else
            inputs.push_back(graph.add_input(graph.fresh_name("x"), ValueType::of(tensor)));
    }
    for (const Tensor& tensor : item.outputs)
        outputs.push_back(tensor.empty() ? nullptr : graph.add_value(graph.fresh_name("y")));
    graph.add_node(item.op, inputs, outputs, item.attributes, item.name);
    for (Value* value : outputs)
        if (value != nullptr) graph.add_output(value);
    return graph;
}

std::vector<Tensor> inputs_of(const Case& item, size_t given) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < std::min(given, item.inputs.size()); ++i)
        if (!item.inputs[i].empty()) inputs.push_back(item.inputs[i]);
    return inputs;
}

std::vector<Tensor> run_engine(const Case& item, size_t given) {
    engine::Stage stage(graph_of(item, given), {}, std::make_shared<engine::WeightStore>());
    return stage.run(inputs_of(item, given));
}

double tolerance(DType dtype) {
    switch (dtype) {
        case DType::f16:
            return 2e-3;
        case DType::bf16:
            return 1.6e-2;
        case DType::f32:
        case DType::f64:
            return 1e-5;
        default:
            return 0;
    }
}

void expect_near(const Tensor& found, const Tensor& expected) {
    ASSERT_EQ(name(found.dtype()), name(expected.dtype()));
    ASSERT_EQ(found.shape(), expected.shape());
    for (int64_t i = 0; i < found.size(); ++i) {
        const double a = load_double(found.dtype(), found.raw(), i);
        const double b = load_double(expected.dtype(), expected.raw(), i);
        const bool same = a == b || (std::isnan(a) && std::isnan(b));
        const double bound = tolerance(found.dtype()) * std::max(1.0, std::fabs(b));
        ASSERT_TRUE(same || std::fabs(a - b) <= bound) << "element " << i << ": " << a << ", expected " << b;
    }
}

void expect_fits(const ValueType& type, const Tensor& tensor) {
    EXPECT_EQ(name(type.dtype), name(tensor.dtype()));
    if (!type.shape) return;
    ASSERT_EQ(type.shape->size(), tensor.shape().size()) << to_string(type);
    for (size_t i = 0; i < type.shape->size(); ++i)
        EXPECT_TRUE(!(*type.shape)[i].known() || (*type.shape)[i].value == tensor.shape()[i])
            << to_string(type) << " for " << to_string(tensor.shape());
}

void check(const Case& item) {
    for (const size_t given : {kAll, size_t{0}}) {
        Graph graph = graph_of(item, given);
        infer_types(graph);
        const std::vector<Tensor> results = ref::run(graph, inputs_of(item, given));
        size_t next = 0;
        for (const Tensor& expected : item.outputs) {
            if (expected.empty()) continue;
            expect_fits(graph.outputs()[next].value->type, results[next]);
            expect_near(results[next++], expected);
        }
    }
}

// The engine knows shapes better when parameters are constants, so both ways lead to different kernels.
void check_engine(const Case& item) {
    for (const size_t given : {kAll, size_t{1}}) {
        const std::vector<Tensor> results = run_engine(item, given);
        size_t next = 0;
        for (const Tensor& expected : item.outputs)
            if (!expected.empty()) expect_near(results[next++], expected);
    }
}

TEST(Operators, AgreeWithTheNodeTestsOfOnnx) {
    for (const char* text : kCases) {
        const Case item = parse_case(text);
        SCOPED_TRACE(item.name);
        try {
            check(item);
        } catch (const Error& error) {
            ADD_FAILURE() << error.what();
        }
    }
}

TEST(Engine, AgreesWithTheNodeTestsOfOnnx) {
    for (const char* text : kCases) {
        const Case item = parse_case(text);
        SCOPED_TRACE(item.name);
        try {
            check_engine(item);
        } catch (const Error& error) {
            ADD_FAILURE() << error.what();
        }
    }
}

// Spoils one thing about a case: a number, a type, a shape, or whether an input is there at all.
class Spoiler {
  public:
    explicit Spoiler(uint32_t seed) : random_(seed) {}

    void spoil(Case& item) {
        const size_t kind = pick(5);
        if (kind == 0 && item.attributes.size() > 0) return spoil_attribute(item.attributes);
        if (item.inputs.empty()) return;
        Tensor& x = item.inputs[pick(item.inputs.size())];
        if (x.empty()) return;
        if (kind <= 1 && is_integer(x.dtype()) && x.size() > 0) {
            x = x.clone();
            store_int(x.dtype(), x.raw_mutable(), static_cast<int64_t>(pick(static_cast<size_t>(x.size()))),
                      number());
        } else if (kind == 2) {
            x = x.converted(std::array{DType::f32, DType::i64, DType::u8, DType::boolean, DType::f16,
                                       DType::i4}[pick(6)]);
        } else if (kind == 3) {
            x = pick(2) == 0 ? Tensor(x.dtype(), {0})
                             : x.reshaped(pick(2) == 0 ? Shape{x.size()} : Shape{1, x.size(), 1, 1});
        } else {
            x = Tensor();
        }
    }

  private:
    size_t pick(size_t count) { return random_() % count; }

    // Small ones, and others no machine has the memory for.
    int64_t number() {
        constexpr std::array<int64_t, 14> kNumbers{-3,
                                                   -2,
                                                   -1,
                                                   0,
                                                   1,
                                                   2,
                                                   3,
                                                   7,
                                                   1000,
                                                   int64_t{1} << 40,
                                                   -(int64_t{1} << 40),
                                                   int64_t{1} << 62,
                                                   std::numeric_limits<int64_t>::max(),
                                                   std::numeric_limits<int64_t>::min()};
        return kNumbers[pick(kNumbers.size())];
    }

    void spoil_attribute(Attributes& attributes) {
        auto& entry = *(attributes.begin() + static_cast<std::ptrdiff_t>(pick(attributes.size())));
        if (auto* integer = std::get_if<int64_t>(&entry.value)) *integer = number();
        if (auto* text = std::get_if<std::string>(&entry.value)) *text = "nonsense";
        if (auto* list = std::get_if<std::vector<int64_t>>(&entry.value)) {
            if (list->empty() || pick(3) == 0)
                list->push_back(number());
            else
                (*list)[pick(list->size())] = number();
        }
    }

    std::mt19937 random_;
};

template <class Run>
void expect_errors_only(uint32_t seed, const Run& run) {
    constexpr int kRounds = 8;
    Spoiler spoiler(seed);
    for (const char* text : kCases) {
        const Case original = parse_case(text);
        for (int round = 0; round < kRounds; ++round) {
            Case item = original;
            spoiler.spoil(item);
            if (round % 2 == 1) spoiler.spoil(item);
            try {
                run(item, round);
            } catch (const Error&) {
                continue;  // the only exception that may come out
            } catch (const std::exception& other) {
                ADD_FAILURE() << item.name << " round " << round << ": " << other.what();
            }
        }
    }
}

TEST(Operators, AnswerSpoiledCasesWithAnErrorOrAResult) {
    expect_errors_only(/*seed=*/1, [](const Case& item, int round) {
        const size_t given = round % 4 >= 2 ? 0 : kAll;
        Graph graph = graph_of(item, given);
        infer_types(graph);
        ref::run(graph, inputs_of(item, given));
    });
}

TEST(Engine, AnswersSpoiledCasesWithAnErrorOrAResult) {
    expect_errors_only(/*seed=*/2,
                       [](const Case& item, int round) { run_engine(item, round % 4 >= 2 ? 1 : kAll); });
}

}  // namespace kilter::cases_test
