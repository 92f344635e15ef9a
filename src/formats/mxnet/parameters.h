// What an MXNet operator is told: every parameter is text in the file ("(1, 1)", "True", "None").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/mxnet/symbol.h"
#include "kilter/base/dtype.h"

namespace kilter::mxnet {

//! Getters return the default when the parameter is absent or "None", and throw Error when it is no such thing.
class Parameters {
  public:
    explicit Parameters(const SymbolNode& node) : node_(node) {}

    bool has(std::string_view name) const;
    std::string text(std::string_view name, std::string_view absent = {}) const;
    int64_t integer(std::string_view name, int64_t absent) const;
    double real(std::string_view name, double absent) const;
    bool flag(std::string_view name, bool absent) const;
    //! "(1, 2)", "[1, 2]" or "1".
    std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> absent = {}) const;
    //! The same, entries may be "None".
    std::vector<std::optional<int64_t>> open_integers(std::string_view name) const;
    //! "float32", or MXNet's number of the type.
    DType dtype(std::string_view name, DType absent) const;

  private:
    const SymbolNode& node_;
};

}  // namespace kilter::mxnet
