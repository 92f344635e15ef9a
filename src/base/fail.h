// Formatting helpers for errors: `fail` throws kilter::Error, `require` throws unless a condition holds.
#pragma once

#include <fmt/core.h>

#include "kilter/base/error.h"

namespace kilter {

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    throw Error(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
    if (!condition) throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace kilter
