// Short ways to read configurations in tests and to see what an error says.
#pragma once

#include "kilter/base/error.h"
#include "kilter/config/config.h"

namespace kilter {

//! Message and hint of the Error that reading this YAML ends in.
inline std::string complaint(const std::string& yaml) {
    try {
        parse_config(yaml, "a.yaml");
    } catch (const Error& error) {
        return error.hint().empty() ? error.what() : std::string(error.what()) + " | " + error.hint();
    }
    return "no error";
}

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

}  // namespace kilter
