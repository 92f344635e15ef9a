// Damaged files end in an Error or in a valid model, never in anything else. The sanitizer build runs these
// too.
#include <gtest/gtest.h>

#include "formats/onnx_samples.h"
#include "kilter/base/error.h"
#include "kilter/passes/passes.h"

namespace kilter::onnx::onnx_damage_test {

using namespace testing;

// What a program does with a model it was given. Any outcome but an Error or success is a crash.
bool survives(const std::string& text) {
    try {
        Model model = read_text(text);
        read_text(write_bytes(model));
        canonicalize(model);
        infer_types(model.graph);
        return true;
    } catch (const Error& error) {
        return std::string_view(error.what()).size() > 0;
    }
}

TEST(OnnxDamage, TruncationAtEveryLength) {
    const std::string text = rich_model();
    for (size_t length = 0; length <= text.size(); ++length)
        EXPECT_TRUE(survives(text.substr(0, length))) << length;
}

TEST(OnnxDamage, EveryByteFlipped) {
    const std::string text = rich_model();
    for (size_t offset = 0; offset < text.size(); ++offset) {
        for (const int mask : {0x01, 0x04, 0x80, 0xFF}) {
            std::string damaged = text;
            damaged[offset] = static_cast<char>(damaged[offset] ^ mask);
            EXPECT_TRUE(survives(damaged)) << offset;
        }
    }
}

TEST(OnnxDamage, EveryByteRemovedOrDoubled) {
    const std::string text = rich_model();
    for (size_t offset = 0; offset < text.size(); ++offset) {
        std::string shorter = text;
        shorter.erase(offset, 1);
        EXPECT_TRUE(survives(shorter)) << offset;
        std::string longer = text;
        longer.insert(offset, 1, text[offset]);
        EXPECT_TRUE(survives(longer)) << offset;
    }
}

}  // namespace kilter::onnx::onnx_damage_test
