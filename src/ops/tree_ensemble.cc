// TreeEnsemble (ai.onnx.ml): decision trees whose leaves add to the targets of a row.
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::tree_ensemble_op {

constexpr std::string_view kDomain = "ai.onnx.ml";

enum Mode : int64_t { at_most, less, at_least, greater, equal, unequal, member };
enum Aggregate : int64_t { average, total, least, most };

class Trees {
  public:
    explicit Trees(const Attributes& attributes)
        : features_(attributes.get_ints("nodes_featureids")),
          true_nodes_(attributes.get_ints("nodes_truenodeids")),
          false_nodes_(attributes.get_ints("nodes_falsenodeids")),
          true_leaf_(attributes.get_ints("nodes_trueleafs")),
          false_leaf_(attributes.get_ints("nodes_falseleafs")),
          missing_true_(attributes.get_ints("nodes_missing_value_tracks_true")),
          splits_(attributes.get_tensor("nodes_splits").to_doubles()),
          modes_(attributes.get_tensor("nodes_modes").to_ints()),
          leaves_(attributes.get_ints("leaf_targetids").size()) {
        const size_t count = features_.size();
        require(true_nodes_.size() == count && false_nodes_.size() == count && true_leaf_.size() == count &&
                    false_leaf_.size() == count && splits_.size() == count && modes_.size() == count &&
                    (missing_true_.empty() || missing_true_.size() == count),
                "the lists that describe {} nodes have different lengths", count);
        sets_.resize(count);
        if (!attributes.has("membership_values")) return;
        // One set for each node that tests for membership, in their order, NaN after each.
        size_t node = 0;
        for (const double value : attributes.get_tensor("membership_values").to_doubles()) {
            while (node < count && modes_[node] != member) ++node;
            require(node < count, "more sets of members than nodes that test for membership");
            if (std::isnan(value))
                ++node;
            else
                sets_[node].push_back(value);
        }
    }

    //! The leaf where a row ends that starts at `node`.
    size_t leaf_of(std::span<const double> row, int64_t node) const {
        // No path is longer than there are nodes; one that is goes in a circle.
        for (size_t step = 0; step <= features_.size(); ++step) {
            require(node >= 0 && node < static_cast<int64_t>(features_.size()), "there is no node {}", node);
            const auto at = static_cast<size_t>(node);
            const bool holds = test(row, at);
            node = holds ? true_nodes_[at] : false_nodes_[at];
            if ((holds ? true_leaf_ : false_leaf_)[at] == 0) continue;
            require(node >= 0 && node < static_cast<int64_t>(leaves_), "there is no leaf {}", node);
            return static_cast<size_t>(node);
        }
        fail("the nodes of a tree form a circle");
    }

  private:
    bool test(std::span<const double> row, size_t node) const {
        require(features_[node] >= 0 && features_[node] < static_cast<int64_t>(row.size()),
                "a node reads feature {} of {}", features_[node], row.size());
        const double x = row[static_cast<size_t>(features_[node])];
        if (std::isnan(x) && !missing_true_.empty() && missing_true_[node] != 0) return true;
        switch (modes_[node]) {
            case at_most:
                return x <= splits_[node];
            case less:
                return x < splits_[node];
            case at_least:
                return x >= splits_[node];
            case greater:
                return x > splits_[node];
            case equal:
                return x == splits_[node];
            case unequal:
                return x != splits_[node];
            case member:
                return std::ranges::find(sets_[node], x) != sets_[node].end();
            default:
                fail("a node has the unknown mode {}", modes_[node]);
        }
    }

    std::vector<int64_t> features_, true_nodes_, false_nodes_, true_leaf_, false_leaf_, missing_true_;
    std::vector<double> splits_;
    std::vector<int64_t> modes_;
    std::vector<std::vector<double>> sets_;
    size_t leaves_;
};

int64_t target_count(const Attributes& attributes) {
    const int64_t targets = attributes.get_int("n_targets");
    require(targets > 0 && targets < (int64_t{1} << 31), "n_targets must be positive, found {}", targets);
    return targets;
}

void infer(InferContext& context) {
    require(context.rank(0) < 0 || context.rank(0) == 2, "expected a matrix, found rank {}", context.rank(0));
    const Dim rows = context.shape(0) ? (*context.shape(0))[0] : Dim();
    context.set_output(0, context.dtype(0), {rows, Dim(target_count(context.attributes()))});
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the table");
    require(x.rank() == 2, "expected a matrix, found {}", to_string(x.shape()));
    const Attributes& attributes = context.attributes();
    require(attributes.get_int("post_transform", 0) == 0, "post_transform {} is not supported",
            attributes.get_int("post_transform", 0));
    const int64_t aggregate = attributes.get_int("aggregate_function", total);
    require(aggregate >= average && aggregate <= most, "aggregate_function must be 0 to 3, found {}",
            aggregate);
    const std::vector<int64_t> roots = attributes.get_ints("tree_roots");
    const std::vector<int64_t> targets = attributes.get_ints("leaf_targetids");
    const std::vector<double> weights = attributes.get_tensor("leaf_weights").to_doubles();
    require(targets.size() == weights.size(), "{} leaves with {} weights", targets.size(), weights.size());
    const Trees trees(attributes);
    const int64_t width = target_count(attributes);
    const Tensor table = to_reals(x);
    Tensor results = real_zeros({x.dim(0), width});
    for (int64_t row = 0; row < x.dim(0); ++row) {
        const std::span<double> sums = results.as_mutable<double>().subspan(static_cast<size_t>(row * width),
                                                                            static_cast<size_t>(width));
        std::vector<char> seen(static_cast<size_t>(width), 0);
        for (const int64_t root : roots) {
            const size_t leaf = trees.leaf_of(table.as<double>().subspan(static_cast<size_t>(row * x.dim(1)),
                                                                         static_cast<size_t>(x.dim(1))),
                                              root);
            require(targets[leaf] >= 0 && targets[leaf] < width, "a leaf adds to target {} of {}",
                    targets[leaf], width);
            const auto target = static_cast<size_t>(targets[leaf]);
            double& sum = sums[target];
            if (aggregate == least || aggregate == most) {
                const double other =
                    aggregate == least ? std::min(sum, weights[leaf]) : std::max(sum, weights[leaf]);
                sum = seen[target] != 0 ? other : weights[leaf];
            } else {
                sum += weights[leaf] / (aggregate == average ? static_cast<double>(roots.size()) : 1.0);
            }
            seen[target] = 1;
        }
    }
    store_reals(context, 0, x.dtype(), results);
}

KILTER_OP({.name = "TreeEnsemble",
           .domain = kDomain,
           .attributes = {{"n_targets", AttributeKind::integer, true},
                          {"aggregate_function", AttributeKind::integer},
                          {"post_transform", AttributeKind::integer},
                          {"tree_roots", AttributeKind::integers, true},
                          {"nodes_modes", AttributeKind::tensor, true},
                          {"nodes_featureids", AttributeKind::integers, true},
                          {"nodes_splits", AttributeKind::tensor, true},
                          {"nodes_truenodeids", AttributeKind::integers, true},
                          {"nodes_trueleafs", AttributeKind::integers, true},
                          {"nodes_falsenodeids", AttributeKind::integers, true},
                          {"nodes_falseleafs", AttributeKind::integers, true},
                          {"nodes_missing_value_tracks_true", AttributeKind::integers},
                          {"membership_values", AttributeKind::tensor},
                          {"leaf_targetids", AttributeKind::integers, true},
                          {"leaf_weights", AttributeKind::tensor, true}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::tree_ensemble_op
