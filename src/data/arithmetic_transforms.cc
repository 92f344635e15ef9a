// Transforms that compute with the elements of an input.
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "data/normalize.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

std::vector<float> floats(const Settings& settings, const char* key) {
    const Settings* value = settings.find(key);
    if (!value) return {};
    const std::vector<double> numbers = value->as_numbers();
    return {numbers.begin(), numbers.end()};
}

// Channels are the last axis of an image as it comes, the first one after ToTensor or Transpose.
int channel_axis(const Tensor& tensor, size_t count) {
    if (count <= 1 || tensor.rank() == 0) return -1;
    const auto wanted = static_cast<int64_t>(count);
    const int last = tensor.rank() - 1;
    return tensor.dim(last) == wanted || tensor.dim(0) != wanted ? last : 0;
}

SampleFunction make_normalize(const TransformSettings& from) {
    from.settings.allow_keys({"mean", "std", "rescale"});
    Normalization normalization{1, floats(from.settings, "mean"), floats(from.settings, "std")};
    for (const float value : normalization.std) require(value != 0, "a deviation must not be 0");
    const std::vector<float> rescale = floats(from.settings, "rescale");
    if (!rescale.empty() && (rescale.size() != 2 || rescale[0] == 0))
        from.settings.get("rescale").reject("[divisor, offset]");
    const size_t count = std::max(normalization.mean.size(), normalization.std.size());
    return [=](Sample& sample) {
        Tensor& tensor = first_input(sample);
        if (!rescale.empty()) tensor = normalize(tensor, -1, {1, {rescale[1] * rescale[0]}, {rescale[0]}});
        tensor = normalize(tensor, channel_axis(tensor, count), normalization);
    };
}

SampleFunction make_rescale(const TransformSettings& from) {
    from.settings.allow_keys({"scale"});
    const Normalization normalization{static_cast<float>(from.settings.get("scale", 1.0 / 255)), {}, {}};
    return [=](Sample& sample) { first_input(sample) = normalize(first_input(sample), -1, normalization); };
}

// For models that take quantized inputs. Without a scale nothing happens: it is not known before tuning.
SampleFunction make_quantized_input(const TransformSettings& from) {
    from.settings.allow_keys({"dtype", "scale"});
    const DType dtype = from.settings.has("dtype") ? as_dtype(from.settings.get("dtype")) : DType::i8;
    if (dtype != DType::i8 && dtype != DType::u8) from.settings.get("dtype").reject("int8 or uint8");
    if (!from.settings.has("scale")) return [](Sample&) {};
    const Normalization normalization{static_cast<float>(from.settings.get("scale").as_number()), {}, {}};
    return [=](Sample& sample) {
        Tensor scaled = normalize(first_input(sample), -1, normalization);
        const float shift = dtype == DType::u8 ? 128.0F : 0.0F;
        const float low = dtype == DType::u8 ? 0.0F : -128.0F;
        for (float& value : scaled.as_mutable<float>())
            value = std::clamp(std::nearbyint(value + shift), low, low + 255);
        first_input(sample) = scaled.converted(dtype);
    };
}

}  // namespace

void add_arithmetic(TransformTable& table) {
    table["Normalize"] = make_normalize;
    table["Rescale"] = make_rescale;
    table["QuantizedInput"] = make_quantized_input;
}

}  // namespace kilter
