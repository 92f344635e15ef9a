// TfIdfVectorizer: how often the n-grams of a pool occur in each row, counted, weighted, or whether at all.
#include <map>

#include "base/fail.h"
#include "ops/op.h"

namespace kilter::tf_idf_vectorizer_op {

// Words are compared as strings, whatever the pool holds.
using Gram = std::vector<std::string>;

struct Pool {
    std::map<Gram, size_t> grams;  // -> position among all n-grams of the pool
    std::vector<int64_t> columns;  // of the output, by position
    std::vector<float> weights;    // empty: all one
    int64_t width = 0;
};

int64_t width_of(const Attributes& attributes) {
    int64_t width = 0;
    for (const int64_t column : attributes.get_ints("ngram_indexes")) {
        require(column >= 0 && column < (int64_t{1} << 31), "ngram_indexes holds {}", column);
        width = std::max(width, column + 1);
    }
    return width;
}

Pool read_pool(const Attributes& attributes) {
    Pool pool;
    pool.columns = attributes.get_ints("ngram_indexes");
    pool.width = width_of(attributes);
    pool.weights = attributes.get_floats("weights");
    Gram words = attributes.get_strings("pool_strings");
    for (const int64_t number : attributes.get_ints("pool_int64s")) words.push_back(std::to_string(number));
    const std::vector<int64_t> starts = attributes.get_ints("ngram_counts");
    for (size_t level = 0; level < starts.size(); ++level) {
        const int64_t end =
            level + 1 < starts.size() ? starts[level + 1] : static_cast<int64_t>(words.size());
        const auto length = static_cast<int64_t>(level) + 1;
        require(starts[level] >= 0 && end >= starts[level] && end <= static_cast<int64_t>(words.size()) &&
                    (end - starts[level]) % length == 0,
                "ngram_counts does not divide a pool of {} words", words.size());
        for (int64_t at = starts[level]; at < end; at += length) {
            const size_t position = pool.grams.size();
            pool.grams.try_emplace(Gram(words.begin() + at, words.begin() + at + length), position);
        }
    }
    require(pool.grams.size() <= pool.columns.size(), "{} n-grams for {} ngram_indexes", pool.grams.size(),
            pool.columns.size());
    require(pool.weights.empty() || pool.weights.size() >= pool.grams.size(), "{} weights for {} n-grams",
            pool.weights.size(), pool.grams.size());
    return pool;
}

Gram words_of(const Tensor& x) {
    if (x.dtype() == DType::string) return x.as_strings();
    Gram words;
    for (const int64_t number : x.to_ints()) words.push_back(std::to_string(number));
    return words;
}

void infer(InferContext& context) {
    require(context.rank(0) <= 2, "expected one or two dimensions, found {}", context.rank(0));
    if (!context.shape(0)) return context.set_output(0, DType::f32);
    Dims shape = *context.shape(0);
    require(!shape.empty(), "expected one or two dimensions, found a scalar");
    shape.back() = width_of(context.attributes());
    context.set_output(0, DType::f32, std::move(shape));
}

void kernel(KernelContext& context) {
    const Tensor& x = context.input(0);
    require(x.rank() == 1 || x.rank() == 2, "expected one or two dimensions, found {}", x.rank());
    const Attributes& attributes = context.attributes();
    const std::string mode = attributes.get_string("mode", "TF");
    require(mode == "TF" || mode == "IDF" || mode == "TFIDF", "mode must be TF, IDF or TFIDF, found '{}'",
            mode);
    const int64_t least = attributes.get_int("min_gram_length", 1);
    const int64_t most = attributes.get_int("max_gram_length", 1);
    const int64_t skips = attributes.get_int("max_skip_count", 0);
    require(least >= 1 && most >= least && skips >= 0, "n-grams of {} to {} words with {} skips", least, most,
            skips);
    const Pool pool = read_pool(attributes);
    const Gram words = words_of(x);
    const int64_t length = x.dim(-1);
    const int64_t rows = x.rank() == 2 ? x.dim(0) : 1;
    Shape shape = x.shape();
    shape.back() = pool.width;
    Tensor& y = context.output(0, DType::f32, shape);
    for (int64_t row = 0; row < rows; ++row) {
        std::vector<int64_t> counts(pool.columns.size(), 0);
        for (int64_t size = least; size <= std::min(most, length); ++size) {
            // A single word cannot be skipped within.
            for (int64_t step = 1; step <= (size == 1 ? 1 : std::min(skips, length) + 1); ++step) {
                for (int64_t start = 0; start + (size - 1) * step < length; ++start) {
                    Gram gram;
                    for (int64_t i = 0; i < size; ++i)
                        gram.push_back(words[static_cast<size_t>(row * length + start + i * step)]);
                    const auto found = pool.grams.find(gram);
                    if (found != pool.grams.end()) ++counts[found->second];
                }
            }
        }
        float* out = y.as_mutable<float>().data() + row * pool.width;
        std::fill_n(out, pool.width, 0.0F);
        for (size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] == 0) continue;
            const float weight = pool.weights.empty() ? 1.0F : pool.weights[i];
            const auto count = static_cast<float>(counts[i]);
            out[pool.columns[i]] = mode == "TF" ? count : mode == "IDF" ? weight : count * weight;
        }
    }
}

KILTER_OP({.name = "TfIdfVectorizer",
           .attributes = {{"mode", AttributeKind::text},
                          {"min_gram_length", AttributeKind::integer},
                          {"max_gram_length", AttributeKind::integer},
                          {"max_skip_count", AttributeKind::integer},
                          {"ngram_counts", AttributeKind::integers},
                          {"ngram_indexes", AttributeKind::integers},
                          {"pool_int64s", AttributeKind::integers},
                          {"pool_strings", AttributeKind::texts},
                          {"weights", AttributeKind::reals}},
           .infer = infer,
           .kernel = kernel});

}  // namespace kilter::tf_idf_vectorizer_op
