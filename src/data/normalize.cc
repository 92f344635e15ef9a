#include "data/normalize.h"

#include <array>
#include <cstring>

#include "base/fail.h"

namespace kilter {
namespace {

struct Channel {
    float mean = 0, std = 1;
};

std::vector<Channel> channels_of(const Normalization& normalization, int64_t count) {
    const auto entry = [&](const std::vector<float>& values, size_t channel, float otherwise) {
        if (values.empty()) return otherwise;
        return values.size() == 1 ? values[0] : values[channel];
    };
    for (const auto* list : {&normalization.mean, &normalization.std})
        require(list->size() <= 1 || static_cast<int64_t>(list->size()) == count,
                "{} means or deviations were given for {} channels", list->size(), count);
    std::vector<Channel> channels(static_cast<size_t>(count));
    for (size_t i = 0; i < channels.size(); ++i)
        channels[i] = {entry(normalization.mean, i, 0), entry(normalization.std, i, 1)};
    return channels;
}

float normalized(float value, float scale, const Channel& channel) {
    return (value * scale - channel.mean) / channel.std;
}

// What each of the 256 pixel values becomes.
std::array<float, 256> lookup(float scale, const Channel& channel) {
    std::array<float, 256> table{};
    for (size_t i = 0; i < table.size(); ++i) table[i] = normalized(static_cast<float>(i), scale, channel);
    return table;
}

// A copy in any case: the elements will be changed.
Tensor as_floats(const Tensor& tensor) {
    if (tensor.dtype() != DType::u8) return tensor.converted(DType::f32).clone();
    Tensor result(DType::f32, tensor.shape());
    const std::span<const uint8_t> source = tensor.as<uint8_t>();
    float* target = result.as_mutable<float>().data();
    for (size_t i = 0; i < source.size(); ++i) target[i] = source[i];
    return result;
}

template <class T>
void interleaved_to_planes(const T* source, int64_t count, int64_t channels, T* target) {
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t i = 0; i < count; ++i) target[c * count + i] = source[i * channels + c];
}

}  // namespace

Tensor normalize(const Tensor& tensor, int axis, const Normalization& normalization) {
    Tensor result = as_floats(tensor);
    const int64_t count = axis < 0 ? 1 : tensor.dim(axis);
    const std::vector<Channel> channels = channels_of(normalization, count);
    const float scale = normalization.scale;
    const std::span<float> values = result.as_mutable<float>();
    if (values.empty()) return result;
    int64_t inner = 1;
    for (int i = axis + 1; axis >= 0 && i < tensor.rank(); ++i) inner *= tensor.dim(i);
    if (axis < 0) inner = static_cast<int64_t>(values.size());
    if (inner > 1) {
        float* next = values.data();
        for (size_t row = 0; next < values.data() + values.size(); ++row) {
            const Channel channel = channels[row % channels.size()];
            for (int64_t i = 0; i < inner; ++i) next[i] = normalized(next[i], scale, channel);
            next += inner;
        }
        return result;
    }
    // Interleaved channels: repeated until a row is long enough for vector instructions.
    std::vector<float> mean;
    std::vector<float> std;
    while (mean.size() < 48 && mean.size() < values.size())
        for (const Channel& channel : channels) {
            mean.push_back(channel.mean);
            std.push_back(channel.std);
        }
    size_t done = 0;
    for (; done + mean.size() <= values.size(); done += mean.size())
        for (size_t i = 0; i < mean.size(); ++i)
            values[done + i] = (values[done + i] * scale - mean[i]) / std[i];
    for (size_t i = 0; done < values.size(); ++done, ++i)
        values[done] = (values[done] * scale - mean[i]) / std[i];
    return result;
}

Tensor to_planes(const Tensor& image) {
    require(image.rank() == 3, "expected an image, height x width x channels, found {}",
            to_string(image.shape()));
    const int64_t count = image.dim(0) * image.dim(1);
    const int64_t channels = image.dim(2);
    Tensor result(image.dtype(), {channels, image.dim(0), image.dim(1)});
    if (image.dtype() == DType::u8)
        interleaved_to_planes(image.as<uint8_t>().data(), count, channels,
                              result.as_mutable<uint8_t>().data());
    else
        interleaved_to_planes(image.as<float>().data(), count, channels, result.as_mutable<float>().data());
    return result;
}

Tensor normalize_to_planes(const Tensor& image, const Normalization& normalization) {
    const int64_t count = image.dim(0) * image.dim(1);
    const int64_t channels = image.dim(2);
    const std::vector<Channel> entries = channels_of(normalization, channels);
    Tensor result(DType::f32, {channels, image.dim(0), image.dim(1)});
    float* target = result.as_mutable<float>().data();
    for (int64_t c = 0; c < channels; ++c, target += count) {
        const std::array<float, 256> table = lookup(normalization.scale, entries[static_cast<size_t>(c)]);
        const uint8_t* source = image.as<uint8_t>().data() + c;
        for (int64_t i = 0; i < count; ++i) target[i] = table[source[i * channels]];
    }
    return result;
}

}  // namespace kilter
