// RotaryEmbedding: pairs of features of every head turned by an angle that depends on the position.
#include "base/fail.h"
#include "ops/numeric.h"

namespace kilter::rotary_embedding_op {

// Sizes of the input, either [batch, heads, sequence, head] or [batch, sequence, heads * head].
struct Heads {
    int64_t batch = 0, heads = 0, sequence = 0, head = 0, rotated = 0;
    bool heads_first = false;

    int64_t offset(int64_t image, int64_t step, int64_t which) const {
        return (heads_first ? (image * heads + which) * sequence + step
                            : (image * sequence + step) * heads + which) *
               head;
    }
};

Heads read_heads(const Attributes& attributes, const Shape& x) {
    require(x.size() == 3 || x.size() == 4, "the input must have rank 3 or 4, found {}", to_string(x));
    Heads sizes;
    sizes.heads_first = x.size() == 4;
    sizes.batch = x[0];
    if (sizes.heads_first) {
        sizes.heads = x[1];
        sizes.sequence = x[2];
        sizes.head = x[3];
    } else {
        sizes.heads = attributes.get_int("num_heads");
        require(sizes.heads > 0 && x[2] % sizes.heads == 0, "attribute 'num_heads' is {} for {} features",
                sizes.heads, x[2]);
        sizes.sequence = x[1];
        sizes.head = x[2] / sizes.heads;
    }
    sizes.rotated = attributes.get_int("rotary_embedding_dim");
    if (sizes.rotated == 0) sizes.rotated = sizes.head;
    require(sizes.rotated > 0 && sizes.rotated <= sizes.head && sizes.rotated % 2 == 0,
            "attribute 'rotary_embedding_dim' is {} for heads of {} features; it must be even and fit",
            sizes.rotated, sizes.head);
    return sizes;
}

void infer(InferContext& context) {
    require(context.rank(0) < 0 || context.rank(0) == 3 || context.rank(0) == 4,
            "the input must have rank 3 or 4");
    context.same_as_input();
}

// Caches are [positions, rotated / 2] with position ids, [batch, sequence, rotated / 2] without.
void check_cache(const Tensor& cache, const Heads& sizes, bool has_ids, std::string_view what) {
    const Shape direct{sizes.batch, sizes.sequence, sizes.rotated / 2};
    const bool fits =
        has_ids ? cache.rank() == 2 && cache.dim(1) == sizes.rotated / 2 : cache.shape() == direct;
    require(fits, "the {} cache {} does not fit {} rotated features", what, to_string(cache.shape()),
            sizes.rotated);
}

void kernel(KernelContext& context) {
    const Tensor& x = needed(context, 0, "the input");
    require_real(x.dtype(), "the input");
    const Tensor cosines = to_reals(needed(context, 1, "the cosine cache"));
    const Tensor sines = to_reals(needed(context, 2, "the sine cache"));
    const Heads sizes = read_heads(context.attributes(), x.shape());
    const bool has_ids = context.has_input(3);
    check_cache(cosines, sizes, has_ids, "cosine");
    check_cache(sines, sizes, has_ids, "sine");
    require(cosines.shape() == sines.shape(), "the caches have shapes {} and {}", to_string(cosines.shape()),
            to_string(sines.shape()));
    std::vector<int64_t> ids;
    if (has_ids) {
        require(context.input(3).shape() == Shape{sizes.batch, sizes.sequence},
                "position_ids must have shape {}x{}, found {}", sizes.batch, sizes.sequence,
                to_string(context.input(3).shape()));
        ids = context.input(3).to_ints();
        for (const int64_t id : ids)
            require(id >= 0 && id < cosines.dim(0), "position {} lies outside the {} cached ones", id,
                    cosines.dim(0));
    }
    const bool interleaved = context.attributes().get_int("interleaved") != 0;
    Tensor y = to_reals(x).clone();
    const int64_t half = sizes.rotated / 2;
    for (int64_t image = 0; image < sizes.batch; ++image)
        for (int64_t step = 0; step < sizes.sequence; ++step) {
            const int64_t token = image * sizes.sequence + step;
            const int64_t row = (has_ids ? ids[static_cast<size_t>(token)] : token) * half;
            for (int64_t which = 0; which < sizes.heads; ++which) {
                double* features = y.as_mutable<double>().data() + sizes.offset(image, step, which);
                for (int64_t i = 0; i < half; ++i) {
                    const double cosine = cosines.as<double>()[static_cast<size_t>(row + i)];
                    const double sine = sines.as<double>()[static_cast<size_t>(row + i)];
                    double& first = features[interleaved ? 2 * i : i];
                    double& second = features[interleaved ? 2 * i + 1 : half + i];
                    const double real = cosine * first - sine * second;
                    second = sine * first + cosine * second;
                    first = real;
                }
            }
        }
    store_reals(context, 0, x.dtype(), y);
}

KILTER_OP({.name = "RotaryEmbedding",
           .min_inputs = 3,
           .max_inputs = 4,
           .attributes = {{"interleaved", AttributeKind::integer},
                          {"num_heads", AttributeKind::integer},
                          {"rotary_embedding_dim", AttributeKind::integer}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::rotary_embedding_op
