// What foldings share: convolutions and products with constant weights, and scales and shifts of their channels.
#pragma once

#include <optional>
#include <vector>

#include "formats/tensorflow/rewrites/rewrites.h"

namespace kilter::tensorflow {

bool is_convolution(const TfNode& node);  // Conv2D, DepthwiseConv2dNative
bool is_product(const TfNode& node);      // these and MatMul

//! Who reads what in a graph, while a rewrite looks at it. Valid until the graph changes.
class Readers {
  public:
    Readers(TfGraph& graph, const Wanted& wanted) : uses_(graph.uses()), wanted_(wanted) {}
    //! Is `node` read once, through its first output, and not wanted itself? Control inputs count as readers.
    bool has_single_reader(const TfNode& node) const;
    const std::vector<TfGraph::Use>& of(const TfNode& node) const;

  private:
    std::unordered_map<std::string, std::vector<TfGraph::Use>> uses_;
    const Wanted& wanted_;
};

//! Of the result of a product: they are its last dimension, of `rank`.
struct Channels {
    int64_t count = 0;
    int64_t rank = 0;
};

//! Numbers that an input always has: a float constant, or arithmetic on some (what freezing leaves of exploded
//! normalizations). Nothing when it depends on the inputs of the graph.
std::optional<Tensor> constant_expression(const TfGraph& graph, const TfInput& input);
//! The same as one number per channel: a vector of them in the last dimension, or one number for all. Nothing when arithmetic with it
//! would change the shape of the product.
std::optional<std::vector<double>> per_channel(const TfGraph& graph, const TfInput& input,
                                               const Channels& channels);

//! y[c] = scale[c] * x[c] + shift[c]
struct Affine {
    std::vector<double> scale, shift;

    static Affine identity(const Channels& channels);
    void multiply(const std::vector<double>& by);
    void divide(const std::vector<double>& by);
    void add(const std::vector<double>& summand, double sign = 1.0);
};

//! A convolution or product with constant float weights, its constant bias if one is added, and nobody else who reads
//! what lies between.
struct Product {
    TfNode* node = nullptr;
    TfNode* bias = nullptr;  // BiasAdd, or Add of a constant vector
    Channels channels;
};

//! The product whose result `input` is. Both nodes of it must have a single reader.
std::optional<Product> product_of(TfGraph& graph, const Readers& readers, const TfInput& input);
//! Channels of the results; nothing when weights are not constant floats of the right rank, or the layout is not NHWC.
std::optional<Channels> output_channels(const TfGraph& graph, const TfNode& product);
//! The constant summand of a BiasAdd or Add|AddV2, and which input the other summand is.
struct Bias {
    std::vector<double> values;
    size_t data_input = 0;
};
std::optional<Bias> bias_of(const TfGraph& graph, const TfNode& node, const Channels& channels);

//! Puts `affine` into the weights and the bias of `product`; `last`, the end of the pattern, becomes the BiasAdd that
//! reads the product, under its own name.
void fold(TfGraph& graph, const Product& product, const Affine& affine, TfNode& last);

//! Removes nodes that had readers once and have none now: leftovers of a change must not count as readers of others.
void remove_leftovers(TfGraph& graph, const Readers& before, const Wanted& wanted);

//! Offers the nodes in order to `one` until it changes none of them any more; how often it did.
template <class One>
int rewrite(TfGraph& graph, const Wanted& wanted, One one) {
    const auto change_one = [&] {
        const Readers readers(graph, wanted);
        for (TfNode* node : graph.sorted()) {
            if (!one(readers, *node)) continue;
            remove_leftovers(graph, readers, wanted);
            return true;
        }
        return false;
    };
    int count = 0;
    while (change_one()) ++count;
    return count;
}

//! Multiplies the output channels of the weights of `product`, in a new constant.
void scale_weights(TfGraph& graph, TfNode& product, const std::vector<double>& scale);

}  // namespace kilter::tensorflow
