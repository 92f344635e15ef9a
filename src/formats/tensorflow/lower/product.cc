// Matrix products.
#include <array>
#include <numeric>

#include "formats/tensorflow/lower/lowering.h"

namespace kilter::tensorflow {
namespace {

Value* matrix(Lowering& l, Value* value, bool transposed, int rank) {
    if (!transposed) return value;
    if (rank == 0) rank = l.rank(value);
    require(rank >= 2, "a matrix needs two axes");
    Ints perm(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return l.transpose(value, perm);
}

void lower_product(Lowering& l, std::string_view left, std::string_view right, int rank) {
    Value* a = matrix(l, l.input(0), l.attributes().get_bool(left), rank);
    Value* b = matrix(l, l.input(1), l.attributes().get_bool(right), rank);
    l.result(l.emit("MatMul", {a, b}));
}

void lower_mat_mul(Lowering& l) { lower_product(l, "transpose_a", "transpose_b", 2); }
void lower_batch_mat_mul(Lowering& l) { lower_product(l, "adj_x", "adj_y", 0); }

void lower_einsum(Lowering& l) {
    l.result(l.emit("Einsum", {l.inputs().begin(), l.inputs().end()},
                    attributes_of({{"equation", l.attributes().get_string("equation")}})));
}

constexpr std::array kProductRules{
    LowerRule{"MatMul", lower_mat_mul},
    LowerRule{"BatchMatMul", lower_batch_mat_mul},
    LowerRule{"BatchMatMulV2", lower_batch_mat_mul},
    LowerRule{"BatchMatMulV3", lower_batch_mat_mul},
    LowerRule{"Einsum", lower_einsum},
};

}  // namespace

std::span<const LowerRule> product_rules() { return kProductRules; }

}  // namespace kilter::tensorflow
