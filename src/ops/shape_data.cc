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
    for (const Dim& dim : numerator) {
        if (!dim.known()) {
            if (dim.symbol.empty()) return std::nullopt;
            symbols.push_back(dim.symbol);
        } else if (__builtin_mul_overflow(above, dim.value, &above)) {
            return std::nullopt;
        }
    }
    for (const Dim& dim : denominator) {
        if (!dim.known()) {
            const auto found = std::ranges::find(symbols, dim.symbol);
            if (dim.symbol.empty() || found == symbols.end()) return std::nullopt;
            symbols.erase(found);
        } else if (__builtin_mul_overflow(below, dim.value, &below)) {
            return std::nullopt;
        }
    }
    if (below == 0) return std::nullopt;
    if (symbols.empty()) {
        require(above % below == 0, "the elements of {} do not divide evenly by {}", to_string(numerator),
                to_string(denominator));
        return Dim(above / below);
    }
    if (symbols.size() == 1 && above == below) return Dim(symbols[0]);
    return std::nullopt;
}

}  // namespace kilter
