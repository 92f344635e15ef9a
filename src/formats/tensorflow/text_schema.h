// Names of the fields of a GraphDef's messages: what its text form is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kilter::tensorflow {

enum class TextKind : uint8_t {
    integer,
    unsigned_integer,
    boolean,
    real,
    wide_real,
    text,
    type,
    full_type,
    message
};

struct TextMessage;

struct TextField {
    std::string_view name;
    uint32_t number;
    TextKind kind;
    const TextMessage* message = nullptr;  // of kind message
};

struct TextMessage {
    std::string_view name;
    std::vector<TextField> fields;

    const TextField* find(std::string_view field_name) const;
    const TextField* find(uint32_t number) const;
};

const TextMessage& graph_def_schema();

//! Names of FullTypeId, e.g. TFT_PRODUCT: nothing, or an empty text, for unknown ones.
std::optional<int64_t> full_type_from_text(std::string_view name);
std::string_view full_type_name(int64_t id);

}  // namespace kilter::tensorflow
