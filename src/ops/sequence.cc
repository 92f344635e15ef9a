// Sequences, lists of tensors: made, read, changed. SequenceMap runs a sub-graph on every element.
// Their element type is not tracked: what comes out of a sequence is known when it runs.
#include "base/fail.h"
#include "ops/movement.h"
#include "ops/op.h"

namespace kilter::sequence_op {

int64_t position_of(const KernelContext& context, size_t index, int64_t absent, int64_t least, int64_t most) {
    if (!context.has_input(index)) return absent;
    const Tensor& given = context.input(index);
    require(given.size() == 1, "the position must be one number, found {}", given.size());
    const int64_t position = given.to_ints()[0];
    require(position >= least && position <= most, "position {} is outside of [{}, {}]", position, least,
            most);
    return position;
}

const std::vector<Tensor>& items_of(const KernelContext& context, size_t index = 0) {
    return context.input(index).as_sequence();
}

void is_sequence(InferContext& context) {
    for (size_t i = 0; i < context.output_count(); ++i) context.set_output(i, DType::sequence);
}

void construct(KernelContext& context) {
    std::vector<Tensor> items;
    for (size_t i = 0; i < context.input_count(); ++i) {
        require(is_element(context.input(i).dtype()), "input {} is no tensor", i);
        require(context.input(i).dtype() == context.input(0).dtype(),
                "a sequence holds tensors of one element type, found {} and {}",
                name(context.input(0).dtype()), name(context.input(i).dtype()));
        items.push_back(context.input(i));
    }
    context.set_output(0, Tensor::sequence(std::move(items)));
}

void empty(KernelContext& context) { context.set_output(0, Tensor::sequence({})); }

void insert(KernelContext& context) {
    std::vector<Tensor> items = items_of(context);
    const Tensor& added = context.input(1);
    const auto count = static_cast<int64_t>(items.size());
    require(is_element(added.dtype()), "input 1 is no tensor");
    require(items.empty() || items[0].dtype() == added.dtype(), "a sequence of {} cannot take a tensor of {}",
            items.empty() ? "" : name(items[0].dtype()), name(added.dtype()));
    const int64_t position = position_of(context, 2, count, -count, count);
    items.insert(items.begin() + (position < 0 ? position + count : position), added);
    context.set_output(0, Tensor::sequence(std::move(items)));
}

void erase(KernelContext& context) {
    std::vector<Tensor> items = items_of(context);
    const auto count = static_cast<int64_t>(items.size());
    require(count > 0, "the sequence is empty");
    const int64_t position = position_of(context, 1, -1, -count, count - 1);
    items.erase(items.begin() + (position < 0 ? position + count : position));
    context.set_output(0, Tensor::sequence(std::move(items)));
}

void at(KernelContext& context) {
    const std::vector<Tensor>& items = items_of(context);
    const auto count = static_cast<int64_t>(items.size());
    require(count > 0, "the sequence is empty");
    const int64_t position = position_of(context, 1, 0, -count, count - 1);
    context.set_output(0, items[static_cast<size_t>(position < 0 ? position + count : position)]);
}

void infer_length(InferContext& context) { context.set_output(0, DType::i64, {}); }

void length(KernelContext& context) {
    context.set_output(0, Tensor::scalar(static_cast<int64_t>(items_of(context).size())));
}

void concat(KernelContext& context) {
    std::vector<Tensor> parts = items_of(context);
    require(!parts.empty(), "the sequence is empty");
    const bool stacks = context.attributes().get_int("new_axis", 0) != 0;
    const int64_t rank = parts[0].rank() + (stacks ? 1 : 0);
    require(rank > 0, "scalars cannot be concatenated without a new axis");
    const auto axis = static_cast<size_t>(normalize_axis(context.attributes().get_int("axis"), rank));
    if (stacks) {
        for (Tensor& part : parts) {
            Shape shape = part.shape();
            require(shape.size() + 1 == static_cast<size_t>(rank), "tensors of different ranks: {} and {}",
                    rank - 1, shape.size());
            shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
            part = part.reshaped(std::move(shape));
        }
    }
    join(context, parts, axis);
}

void infer_map(InferContext& context) {
    const Graph& body = *context.attributes().get_graph("body");
    require(body.inputs().size() == context.input_count() && body.outputs().size() == context.output_count(),
            "the body takes {} inputs and gives {} results for {} inputs and {} outputs",
            body.inputs().size(), body.outputs().size(), context.input_count(), context.output_count());
    std::vector<ValueType> inputs(context.input_count());
    for (size_t i = 0; i < inputs.size(); ++i)
        if (context.dtype(i) != DType::sequence) inputs[i].dtype = context.dtype(i);
    context.infer_subgraph(body, inputs);
    is_sequence(context);
}

void map(KernelContext& context) {
    const Graph& body = *context.attributes().get_graph("body");
    const size_t count = items_of(context).size();
    std::vector<std::vector<Tensor>> results(context.output_count());
    for (size_t item = 0; item < count; ++item) {
        std::vector<Tensor> arguments;
        for (size_t i = 0; i < context.input_count(); ++i) {
            const bool sequence = context.input(i).dtype() == DType::sequence;
            require(!sequence || items_of(context, i).size() == count,
                    "sequences of different lengths: {} and {}", count,
                    sequence ? items_of(context, i).size() : 0);
            arguments.push_back(sequence ? items_of(context, i)[item] : context.input(i));
        }
        std::vector<Tensor> made = context.run_subgraph(body, std::move(arguments));
        require(made.size() == results.size(), "the body gives {} results for {} outputs", made.size(),
                results.size());
        for (size_t i = 0; i < made.size(); ++i) results[i].push_back(std::move(made[i]));
    }
    for (size_t i = 0; i < results.size(); ++i)
        context.set_output(i, Tensor::sequence(std::move(results[i])));
}

KILTER_OP({.name = "SequenceConstruct",
           .max_inputs = kVariadic,
           .infer = is_sequence,
           .kernel = construct,
           .tensors_only = false});
KILTER_OP({.name = "SequenceEmpty",
           .min_inputs = 0,
           .max_inputs = 0,
           .attributes = {{"dtype", AttributeKind::integer}},
           .infer = is_sequence,
           .kernel = empty});
KILTER_OP({.name = "SequenceInsert",
           .min_inputs = 2,
           .max_inputs = 3,
           .infer = is_sequence,
           .kernel = insert,
           .tensors_only = false});
KILTER_OP(
    {.name = "SequenceErase", .max_inputs = 2, .infer = is_sequence, .kernel = erase, .tensors_only = false});
KILTER_OP({.name = "SequenceAt", .min_inputs = 2, .max_inputs = 2, .kernel = at, .tensors_only = false});
KILTER_OP({.name = "SequenceLength", .infer = infer_length, .kernel = length, .tensors_only = false});
KILTER_OP({.name = "ConcatFromSequence",
           .attributes = {{"axis", AttributeKind::integer, true}, {"new_axis", AttributeKind::integer}},
           .kernel = concat,
           .tensors_only = false});
KILTER_OP({.name = "SequenceMap",
           .max_inputs = kVariadic,
           .max_outputs = kVariadic,
           .attributes = {{"body", AttributeKind::graph, true}},
           .infer = infer_map,
           .kernel = map,
           .tensors_only = false});

}  // namespace kilter::sequence_op
