// Einsum: sums of products over labelled axes, in NumPy's notation.
#include <cctype>
#include <map>

#include "base/fail.h"
#include "ops/broadcast.h"
#include "ops/numeric.h"
#include "ops/product.h"

namespace kilter::einsum_op {

// A label is a letter, or kEllipsis + i for the i-th axis from the right that an ellipsis stands for.
using Labels = std::vector<int>;
constexpr int kEllipsis = 256;
constexpr int kDots = -1;  // an ellipsis that has not been given its axes yet

struct Equation {
    std::vector<Labels> terms;
    Labels result;
};

Labels parse_term(std::string_view text) {
    Labels labels;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == ' ') continue;
        if (text.substr(i, 3) == "...") {
            require(std::ranges::find(labels, kDots) == labels.end(), "two ellipses in the einsum term '{}'",
                    text);
            labels.push_back(kDots);
            i += 2;
            continue;
        }
        require(std::isalpha(static_cast<unsigned char>(text[i])) != 0,
                "unexpected '{}' in the einsum term '{}'", text[i], text);
        labels.push_back(text[i]);
    }
    return labels;
}

// Replaces the ellipsis by one label for each of its `count` axes.
Labels expand(const Labels& labels, int64_t count) {
    Labels expanded;
    for (const int label : labels) {
        if (label != kDots)
            expanded.push_back(label);
        else
            for (int64_t i = count; i-- > 0;) expanded.push_back(kEllipsis + static_cast<int>(i));
    }
    return expanded;
}

Equation parse(const std::string& text, const std::vector<size_t>& ranks) {
    const size_t arrow = text.find("->");
    const std::string_view left = std::string_view(text).substr(0, arrow);
    std::vector<Labels> terms;
    for (size_t begin = 0;;) {
        const size_t comma = left.find(',', begin);
        terms.push_back(parse_term(left.substr(begin, comma == left.npos ? left.npos : comma - begin)));
        if (comma == left.npos) break;
        begin = comma + 1;
    }
    require(terms.size() == ranks.size(), "the einsum equation '{}' has {} terms for {} inputs", text,
            terms.size(), ranks.size());
    Equation equation;
    int64_t dots = 0;
    for (size_t i = 0; i < terms.size(); ++i) {
        const bool has_dots = std::ranges::find(terms[i], kDots) != terms[i].end();
        const int64_t covered =
            static_cast<int64_t>(ranks[i]) - static_cast<int64_t>(terms[i].size()) + (has_dots ? 1 : 0);
        require(has_dots ? covered >= 0 : covered == 0,
                "term {} of the einsum equation '{}' does not fit rank {}", i, text, ranks[i]);
        if (has_dots) dots = std::max(dots, covered);
        equation.terms.push_back(expand(terms[i], covered));
    }
    if (arrow != std::string::npos) {
        equation.result = expand(parse_term(std::string_view(text).substr(arrow + 2)), dots);
    } else {
        // Implicit: the ellipsis, then in alphabetical order all letters that occur once.
        std::map<int, int> uses;
        for (const Labels& labels : equation.terms)
            for (const int label : labels) ++uses[label];
        equation.result = expand({kDots}, dots);
        for (const auto& [label, count] : uses)
            if (label < kEllipsis && count == 1) equation.result.push_back(label);
    }
    return equation;
}

// The extent of every label; labels of extent 1 broadcast.
std::map<int, Dim> extents(const Equation& equation, const std::vector<Dims>& shapes) {
    std::map<int, Dim> sizes;
    for (size_t term = 0; term < shapes.size(); ++term)
        for (size_t axis = 0; axis < shapes[term].size(); ++axis) {
            const auto [entry, added] = sizes.emplace(equation.terms[term][axis], shapes[term][axis]);
            if (!added) entry->second = broadcast(Dims{entry->second}, Dims{shapes[term][axis]})[0];
        }
    for (size_t i = 0; i < equation.result.size(); ++i) {
        const auto same = std::count(equation.result.begin(), equation.result.end(), equation.result[i]);
        require(same == 1 && sizes.contains(equation.result[i]),
                "the result of an einsum equation names an axis twice or one that no input has");
    }
    return sizes;
}

void infer(InferContext& context) {
    std::vector<Dims> shapes;
    std::vector<size_t> ranks;
    for (size_t i = 0; i < context.input_count(); ++i) {
        require_same_dtype(context.dtype(0), context.dtype(i), "every operand");
        if (!context.shape(i)) return context.set_output(0, context.dtype(0));
        shapes.push_back(*context.shape(i));
        ranks.push_back(shapes.back().size());
    }
    const Equation equation = parse(context.attributes().get_string("equation"), ranks);
    const std::map<int, Dim> sizes = extents(equation, shapes);
    Dims result;
    for (const int label : equation.result) result.push_back(sizes.at(label));
    context.set_output(0, context.dtype(0), std::move(result));
}

// A nest of loops: extents, and how far each step moves in every operand.
struct Loops {
    Shape extents;
    std::vector<Shape> steps;  // [operand][loop]

    void add(int64_t extent, const Shape& moves) {
        extents.push_back(extent);
        for (size_t i = 0; i < steps.size(); ++i) steps[i].push_back(moves[i]);
    }
    Shape offsets(int64_t position) const {
        Shape result(steps.size(), 0);
        for (size_t loop = extents.size(); loop-- > 0; position /= extents[loop])
            for (size_t i = 0; i < steps.size(); ++i) result[i] += position % extents[loop] * steps[i][loop];
        return result;
    }
};

template <class T>
Tensor contract(const Equation& equation, const std::map<int, Dim>& sizes,
                const std::vector<Tensor>& operands) {
    // The step of a label is the sum over the axes that carry it: "ii" walks a diagonal.
    const auto moves = [&](int label) {
        Shape result(operands.size(), 0);
        for (size_t i = 0; i < operands.size(); ++i) {
            const Shape strides = row_major_strides(operands[i].shape());
            for (size_t axis = 0; axis < strides.size(); ++axis)
                if (equation.terms[i][axis] == label && operands[i].shape()[axis] != 1)
                    result[i] += strides[axis];
        }
        return result;
    };
    Loops outer{{}, std::vector<Shape>(operands.size())};
    Loops inner{{}, std::vector<Shape>(operands.size())};
    Shape shape;
    for (const int label : equation.result) {
        outer.add(sizes.at(label).value, moves(label));
        shape.push_back(sizes.at(label).value);
    }
    // The last summed label is the innermost loop, on its own.
    int64_t count = 1;
    Shape step(operands.size(), 0);
    for (const auto& [label, dim] : sizes) {
        if (std::ranges::find(equation.result, label) != equation.result.end()) continue;
        inner.add(count, step);
        count = dim.value;
        step = moves(label);
    }
    Tensor result(operands[0].dtype(), shape);
    const int64_t rounds = element_count(inner.extents);
    std::vector<const T*> data;
    for (const Tensor& operand : operands) data.push_back(operand.as<T>().data());
    for (int64_t position = 0; position < result.size(); ++position) {
        const Shape base = outer.offsets(position);
        T sum{0};
        for (int64_t round = 0; round < rounds; ++round) {
            const Shape offset = inner.offsets(round);
            for (int64_t k = 0; k < count; ++k) {
                T term{1};
                for (size_t i = 0; i < data.size(); ++i) term *= data[i][base[i] + offset[i] + k * step[i]];
                sum += term;
            }
        }
        result.as_mutable<T>()[static_cast<size_t>(position)] = sum;
    }
    return result;
}

void kernel(KernelContext& context) {
    std::vector<Dims> shapes;
    std::vector<size_t> ranks;
    std::vector<Tensor> operands;
    const DType dtype = needed(context, 0, "the first operand").dtype();
    for (size_t i = 0; i < context.input_count(); ++i) {
        const Tensor& operand = needed(context, i, "an operand");
        require_same_dtype(dtype, operand.dtype(), "every operand");
        shapes.push_back(to_dims(operand.shape()));
        ranks.push_back(shapes.back().size());
        operands.push_back(is_integer(dtype) ? to_words(operand) : to_reals(operand));
    }
    const Equation equation = parse(context.attributes().get_string("equation"), ranks);
    const std::map<int, Dim> sizes = extents(equation, shapes);
    if (is_integer(dtype))
        return store_words(context, 0, dtype, contract<uint64_t>(equation, sizes, operands));
    store_reals(context, 0, dtype, contract<double>(equation, sizes, operands));
}

KILTER_OP({.name = "Einsum",
           .min_inputs = 1,
           .max_inputs = kVariadic,
           .attributes = {{"equation", AttributeKind::text, true}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::einsum_op
