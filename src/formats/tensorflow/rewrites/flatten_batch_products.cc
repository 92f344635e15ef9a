// BatchMatMul of a tensor of any rank and a constant matrix, as Keras writes dense layers, is a MatMul between two reshapes; what follows
// moves in front of the second one, where integer operators can take it in.
#include <algorithm>

#include "formats/tensorflow/rewrites/affine.h"
#include "formats/tensorflow/rewrites/gelu.h"

namespace kilter::tensorflow {
namespace {

constexpr int kDeepestShape = 8;  // arithmetic on shapes that is followed

TfInput ints(TfGraph& graph, const std::string& stem, const std::vector<int32_t>& values) {
    return TfInput::of(graph
                           .add_constant(graph.fresh_name(stem),
                                         Tensor::of<int32_t>({static_cast<int64_t>(values.size())}, values))
                           .name);
}

TfNode& add_reshape(TfGraph& graph, std::string name, const TfInput& x, const TfInput& shape) {
    TfNode& node = graph.add(std::move(name), "Reshape", {x, shape});
    node.attributes.set("T", kFloat);
    node.attributes.set("Tshape", kInt32);
    return node;
}

// The shape of x, with another last dimension.
TfInput shape_like(TfGraph& graph, const std::string& stem, const TfInput& x, int32_t last) {
    TfNode& all = graph.add(graph.fresh_name(stem + "/input_shape"), "Shape", {x});
    all.attributes.set("T", kFloat);
    all.attributes.set("out_type", kInt32);
    TfNode& first = graph.add(graph.fresh_name(stem + "/leading"), "StridedSlice",
                              {TfInput::of(all.name), ints(graph, stem + "/begin", {0}),
                               ints(graph, stem + "/end", {-1}), ints(graph, stem + "/stride", {1})});
    first.attributes.set("T", kInt32);
    first.attributes.set("Index", kInt32);
    TfNode& shape = graph.add(
        graph.fresh_name(stem + "/output_shape"), "ConcatV2",
        {TfInput::of(first.name), ints(graph, stem + "/columns", {last}),
         TfInput::of(graph.add_constant(graph.fresh_name(stem + "/axis"), Tensor::scalar<int32_t>(0)).name)});
    shape.attributes.set("N", int64_t{2});
    shape.attributes.set("T", kInt32);
    shape.attributes.set("Tidx", kInt32);
    return TfInput::of(shape.name);
}

// x as a matrix; products that read the same tensor share it.
TfInput rows_of(TfGraph& graph, const Readers& readers, const TfInput& x, const std::string& stem,
                int32_t columns) {
    const std::vector<int64_t> shape{-1, columns};
    if (const TfNode* producer = graph.producer(x))
        for (const TfGraph::Use& use : readers.of(*producer)) {
            if (use.node->op != "Reshape" || use.node->data_inputs() != 2 || !(use.node->inputs[0] == x))
                continue;
            const std::optional<Tensor> found = constant_of(graph, use.node->inputs[1]);
            if (found && found->to_ints() == shape) return TfInput::of(use.node->name);
        }
    return TfInput::of(add_reshape(graph, graph.fresh_name(stem + "/rows"), x,
                                   ints(graph, stem + "/rows_shape", {-1, columns}))
                           .name);
}

bool flatten(TfGraph& graph, const Readers& readers, const Wanted& wanted, TfNode& node) {
    if ((node.op != "BatchMatMulV2" && node.op != "BatchMatMul" && node.op != "BatchMatMulV3") ||
        node.data_inputs() != 2 || node.inputs.size() != 2)
        return false;
    if (node.attributes.get_bool("adj_x") || node.attributes.get_type("T", kFloat) != kFloat) return false;
    const std::optional<Tensor> weights = constant_of(graph, node.inputs[1]);
    if (!weights || weights->rank() != 2 || weights->dtype() != DType::f32) return false;
    const bool transposed = node.attributes.get_bool("adj_y");
    const auto rows = static_cast<int32_t>(weights->dim(transposed ? 1 : 0));
    const auto columns = static_cast<int32_t>(weights->dim(transposed ? 0 : 1));
    const TfInput x = node.inputs[0];
    const TfInput matrix = node.inputs[1];
    const std::string name = node.name;
    // The product keeps the name that users know, unless its result is wanted under it.
    if (wanted.contains(name)) graph.rename(node, graph.fresh_name(name + "/product"));
    const TfInput shape = shape_like(graph, name, x, columns);
    const TfInput flat = rows_of(graph, readers, x, name, rows);
    TfNode& whole = add_reshape(graph, wanted.contains(name) ? name : graph.fresh_name(name + "/batches"),
                                TfInput::of(node.name), shape);
    graph.replace_uses(TfInput::of(node.name), TfInput::of(whole.name));
    whole.inputs[0] = TfInput::of(node.name);
    node.op = "MatMul";
    node.inputs = {flat, matrix};
    node.attributes = {};
    node.attributes.set("T", kFloat);
    node.attributes.set("transpose_a", false);
    node.attributes.set("transpose_b", transposed);
    return true;
}

// Does a shape consist of sizes only, without a -1 that stands for the rest?
bool is_complete_shape(const TfGraph& graph, const TfInput& shape, int depth = 0) {
    if (const std::optional<Tensor> constant = constant_of(graph, shape)) {
        const std::vector<int64_t> sizes = constant->to_ints();
        return std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; });
    }
    const TfNode* node = graph.producer(shape);
    if (node == nullptr || node->data_inputs() == 0 || depth > kDeepestShape) return false;
    if (node->op == "Shape") return true;
    if (node->op == "StridedSlice" || node->op == "GatherV2")
        return is_complete_shape(graph, node->inputs[0], depth + 1);
    if (node->op != "ConcatV2" && node->op != "Pack") return false;
    const size_t parts = node->op == "Pack" ? node->data_inputs() : node->data_inputs() - 1;
    for (size_t i = 0; i < parts; ++i)
        if (!is_complete_shape(graph, node->inputs[i], depth + 1)) return false;
    return true;
}

// Shape(Reshape(x, s)) is s: nobody needs x as floats to know it.
bool bypass_shape(TfGraph& graph, const Wanted& wanted, TfNode& node) {
    if (node.op != "Shape" || wanted.contains(node.name)) return false;
    if (node.data_inputs() != 1) return false;
    const TfNode* reshape = graph.producer(node.inputs[0]);
    if (reshape == nullptr || reshape->op != "Reshape" || reshape->data_inputs() != 2 ||
        !is_complete_shape(graph, reshape->inputs[1]))
        return false;
    if (node.attributes.get_type("out_type", kInt32) != reshape->attributes.get_type("Tshape", kInt32))
        return false;
    graph.replace_uses(TfInput::of(node.name), reshape->inputs[1]);
    return true;
}

// The last dimension that a shape asks for, when it is known.
std::optional<int64_t> last_dimension(const TfGraph& graph, const TfInput& shape, int depth = 0) {
    if (const std::optional<Tensor> constant = constant_of(graph, shape)) {
        if (constant->size() == 0) return std::nullopt;
        return constant->to_ints().back();
    }
    const TfNode* node = graph.producer(shape);
    if (node == nullptr || node->data_inputs() < 2 || depth > kDeepestShape) return std::nullopt;
    if (node->op == "Pack") return last_dimension(graph, node->inputs[node->data_inputs() - 1], depth + 1);
    if (node->op == "ConcatV2")
        return last_dimension(graph, node->inputs[node->data_inputs() - 2], depth + 1);
    return std::nullopt;
}

// Reshape(MatMul) → an added vector: the vector is added first.
bool sink_below_bias(TfGraph& graph, const Readers& readers, TfNode& reshape, int64_t columns) {
    if (!readers.has_single_reader(reshape)) return false;
    TfNode& sum = *readers.of(reshape)[0].node;
    const std::optional<Bias> bias = bias_of(graph, sum, {columns, 1});
    if (!bias || sum.inputs[bias->data_input].node != reshape.name || sum.data_inputs() != sum.inputs.size())
        return false;
    const std::vector<float> values(bias->values.begin(), bias->values.end());
    const TfInput vector = TfInput::of(
        graph.add_constant(graph.fresh_name(sum.name + "/vector"), Tensor::of<float>({columns}, values))
            .name);
    const TfInput shape = reshape.inputs[1];
    sum.attributes = reshape.attributes;
    reshape.op = "BiasAdd";
    reshape.inputs[1] = vector;
    reshape.attributes = {};
    reshape.attributes.set("T", kFloat);
    reshape.attributes.set("data_format", "NHWC");
    sum.op = "Reshape";
    sum.inputs = {TfInput::of(reshape.name), shape};
    return true;
}

// … → GELU: it works on rows as well.
bool sink_below_gelu(TfGraph& graph, const Readers& readers, const Wanted& wanted, TfNode& reshape) {
    const std::optional<Gelu> gelu = gelu_behind(graph, readers, reshape, wanted);
    if (!gelu) return false;
    for (TfNode* node : gelu->nodes)
        for (TfInput& input : node->inputs)
            if (input.node == reshape.name) input = reshape.inputs[0];
    const std::string name = gelu->last().name;
    graph.rename(gelu->last(), graph.fresh_name(name + "/rows"));
    TfNode& whole = add_reshape(graph, name, TfInput::of(gelu->last().name), reshape.inputs[1]);
    graph.replace_uses(TfInput::of(gelu->last().name), TfInput::of(name));
    whole.inputs[0] = TfInput::of(gelu->last().name);
    whole.attributes = reshape.attributes;
    return true;
}

bool sink(TfGraph& graph, const Readers& readers, const Wanted& wanted, TfNode& reshape) {
    if (reshape.op != "Reshape" || wanted.contains(reshape.name) || reshape.data_inputs() != 2 ||
        reshape.inputs.size() != 2)
        return false;
    const std::optional<Product> product = product_of(graph, readers, reshape.inputs[0]);
    if (!product || product->node->op != "MatMul") return false;
    if (last_dimension(graph, reshape.inputs[1]) != product->channels.count) return false;
    if (product->bias == nullptr && sink_below_bias(graph, readers, reshape, product->channels.count))
        return true;
    return sink_below_gelu(graph, readers, wanted, reshape);
}

}  // namespace

int flatten_batch_products(TfGraph& graph, const Wanted& wanted) {
    const int flattened = rewrite(graph, wanted, [&](const Readers& readers, TfNode& node) {
        return flatten(graph, readers, wanted, node);
    });
    return flattened + rewrite(graph, wanted, [&](const Readers& readers, TfNode& node) {
               return sink(graph, readers, wanted, node) || bypass_shape(graph, wanted, node);
           });
}

}  // namespace kilter::tensorflow
