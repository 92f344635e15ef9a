#include "ops/shape_data.h"

#include <algorithm>
#include <charconv>

#include "base/fail.h"

namespace kilter {
namespace {

std::optional<int64_t> numeral(const std::string& symbol) {
    if (symbol.size() < 2 || symbol[0] != '-') return std::nullopt;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(symbol.data(), symbol.data() + symbol.size(), number);
    if (error != std::errc() || end != symbol.data() + symbol.size()) return std::nullopt;
    return number;
}

// A product of dimensions is a dimension of its own, named by its factors: "32 · batch". What a Reshape merges, another one
// takes apart again.
const std::string kTimes = " · ";
constexpr size_t kMaxFactors = 8;  // a longer product is no shape of a real network

// The numbers and names whose product the dimensions are; false when one is unknown or the numbers overflow.
bool factorize(const Dims& dims, int64_t& number, std::vector<std::string>& symbols) {
    for (const Dim& dim : dims) {
        if (dim.known()) {
            if (__builtin_mul_overflow(number, dim.value, &number)) return false;
            continue;
        }
        if (dim.symbol.empty()) return false;
        for (size_t begin = 0; begin <= dim.symbol.size();) {
            const size_t end = std::min(dim.symbol.find(kTimes, begin), dim.symbol.size());
            const std::string factor = dim.symbol.substr(begin, end - begin);
            int64_t value = 0;
            const auto [stop, error] = std::from_chars(factor.data(), factor.data() + factor.size(), value);
            const bool numeric = begin == 0 && end < dim.symbol.size() && error == std::errc() &&
                                 stop == factor.data() + factor.size() && value > 0;
            if (!numeric)
                symbols.push_back(factor);
            else if (__builtin_mul_overflow(number, value, &number))
                return false;
            begin = end + kTimes.size();
        }
    }
    return true;
}

}  // namespace

Dim data_entry(int64_t number) { return number >= 0 ? Dim(number) : Dim(std::to_string(number)); }

Dim data_entry(const Dim& dim) { return dim.known() || !numeral(dim.symbol) ? dim : Dim(); }

std::optional<int64_t> entry_number(const Dim& entry) {
    if (entry.known()) return entry.value;
    return numeral(entry.symbol);
}

void fold_shape_data(InferContext& context, const std::function<Dim(const Dim&, const Dim&)>& function) {
    if (context.rank(0) < 0 || context.rank(0) > 1 || context.rank(1) < 0 || context.rank(1) > 1) return;
    const std::optional<Dims> a = context.shape_data(0);
    const std::optional<Dims> b = context.shape_data(1);
    if (!a || !b || a->empty() || b->empty()) return;
    if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return;
    Dims result(std::max(a->size(), b->size()));
    for (size_t i = 0; i < result.size(); ++i)
        result[i] = function((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    context.set_shape_data(0, std::move(result));
}

void pass_shape_data(InferContext& context, size_t input) {
    if (std::optional<Dims> data = context.shape_data(input)) context.set_shape_data(0, std::move(*data));
}

std::optional<Dim> dim_quotient(const Dims& numerator, const Dims& denominator) {
    int64_t above = 1;
    int64_t below = 1;
    std::vector<std::string> symbols;
    std::vector<std::string> divisors;
    if (!factorize(numerator, above, symbols) || !factorize(denominator, below, divisors))
        return std::nullopt;
    for (const std::string& divisor : divisors) {
        const auto found = std::ranges::find(symbols, divisor);
        if (found == symbols.end()) return std::nullopt;
        symbols.erase(found);
    }
    if (below == 0) return std::nullopt;
    if (symbols.empty()) {
        require(above % below == 0, "the elements of {} do not divide evenly by {}", to_string(numerator),
                to_string(denominator));
        return Dim(above / below);
    }
    if (above == 0 || above % below != 0 || symbols.size() > kMaxFactors) return std::nullopt;
    if (symbols.size() == 1 && above == below) return Dim(symbols[0]);
    std::string product = above == below ? "" : std::to_string(above / below);
    std::ranges::sort(symbols);
    for (const std::string& symbol : symbols) product += (product.empty() ? "" : kTimes) + symbol;
    return Dim(std::move(product));
}

}  // namespace kilter
