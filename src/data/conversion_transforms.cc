// Transforms that change the type or the order of the elements of an input, and what is done to labels.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/fail.h"
#include "data/image.h"
#include "data/normalize.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

Tensor transposed(const Tensor& tensor, const std::vector<int64_t>& order) {
    require(static_cast<size_t>(tensor.rank()) == order.size(), "perm has {} axes, the input is {}",
            order.size(), to_string(tensor.shape()));
    if (tensor.rank() == 3 && order == std::vector<int64_t>{2, 0, 1} &&
        (tensor.dtype() == DType::u8 || tensor.dtype() == DType::f32))
        return to_planes(tensor);
    require(bits(tensor.dtype()) >= 8, "{} cannot be transposed", name(tensor.dtype()));
    std::vector<int64_t> strides(order.size(), 1);
    for (size_t i = order.size(); i-- > 1;) strides[i - 1] = strides[i] * tensor.shape()[i];
    Shape shape;
    for (const int64_t axis : order) shape.push_back(tensor.shape()[static_cast<size_t>(axis)]);
    Tensor result(tensor.dtype(), shape);
    const auto size = static_cast<size_t>(bits(tensor.dtype()) / 8);
    std::vector<int64_t> index(order.size(), 0);
    for (int64_t i = 0; i < tensor.size(); ++i) {
        int64_t source = 0;
        for (size_t k = 0; k < order.size(); ++k) source += index[k] * strides[static_cast<size_t>(order[k])];
        std::memcpy(static_cast<char*>(result.raw_mutable()) + static_cast<size_t>(i) * size,
                    static_cast<const char*>(tensor.raw()) + static_cast<size_t>(source) * size, size);
        for (size_t k = order.size(); k-- > 0;) {
            if (++index[k] < shape[k]) break;
            index[k] = 0;
        }
    }
    return result;
}

SampleFunction make_transpose(const TransformSettings& from) {
    from.settings.allow_keys({"perm"});
    const Settings& given = from.settings.get("perm");
    const std::vector<int64_t> order = given.as_ints();
    std::vector<int64_t> sorted = order;
    std::ranges::sort(sorted);
    for (size_t i = 0; i < sorted.size(); ++i)
        if (sorted[i] != static_cast<int64_t>(i)) given.reject("every axis once, e.g. [2, 0, 1]");
    return [=](Sample& sample) { first_input(sample) = transposed(first_input(sample), order); };
}

SampleFunction make_cast(const TransformSettings& from) {
    from.settings.allow_keys({"dtype"});
    const DType dtype = from.settings.has("dtype") ? as_dtype(from.settings.get("dtype")) : DType::f32;
    return [=](Sample& sample) { first_input(sample) = first_input(sample).converted(dtype); };
}

// Channels first and u8 pixels in 0 … 1, as torchvision and Gluon do it.
SampleFunction make_to_tensor(const TransformSettings& from) {
    from.settings.allow_keys({});
    return [](Sample& sample) {
        Tensor& image = image_of(sample);
        // torchvision divides, it does not multiply by 1/255.
        image = image.dtype() == DType::u8 ? normalize_to_planes(image, {1, {}, {255}}) : to_planes(image);
    };
}

SampleFunction make_align_image_channel(const TransformSettings& from) {
    from.settings.allow_keys({"dim"});
    const int64_t channels = from.settings.get("dim", 3);
    require(channels == 1 || channels == 3 || channels == 4, "dim must be 1, 3 or 4, found {}", channels);
    return [=](Sample& sample) {
        Tensor& image = first_input(sample);
        if (image.rank() == 2) image = image.reshaped({image.dim(0), image.dim(1), 1});
        require(image.dtype() == DType::u8, "expected u8 pixels, found {}", name(image.dtype()));
        image = with_channels(image_of(sample), channels);
    };
}

// Written LabelShift: 1 or LabelShift: {label_shift: 1}.
SampleFunction make_label_shift(const TransformSettings& from) {
    int64_t shift = 0;
    if (from.settings.is_number()) {
        shift = from.settings.as_int();
    } else {
        from.settings.allow_keys({"label_shift", "label"});
        shift = from.settings.get("label_shift", 0);
    }
    return [=](Sample& sample) {
        const auto found = sample.label.find("label");
        require(found != sample.label.end(), "there is no label to shift");
        Tensor& label = found->second;
        require(is_integer(label.dtype()), "the label is {}, classes are whole numbers", name(label.dtype()));
        std::vector<int64_t> values = label.to_ints();
        for (int64_t& value : values) value -= shift;
        label = Tensor::of<int64_t>(label.shape(), values);
    };
}

// What these did to the outputs of a BERT model, the dataset SQuAD and its metric do.
SampleFunction make_squad_nothing(const TransformSettings& from) {
    from.settings.allow_keys({"length", "label_file", "vocab_file", "n_best_size", "max_seq_length",
                              "max_query_length", "max_answer_length", "do_lower_case", "doc_stride"});
    return [](Sample&) {};
}

// Records are parsed and images are decoded by the datasets; arrays are arrays.
SampleFunction make_nothing(const TransformSettings& from) {
    from.settings.allow_keys({});
    return [](Sample&) {};
}

}  // namespace

DType as_dtype(const Settings& value) {
    const std::string& text = value.as_text();
    if (const auto found = parse_dtype(text); found && *found != DType::undefined) return *found;
    static const std::pair<std::string_view, DType> kNames[] = {
        {"float32", DType::f32}, {"float", DType::f32},  {"float16", DType::f16},  {"bfloat16", DType::bf16},
        {"float64", DType::f64}, {"double", DType::f64}, {"bool", DType::boolean}, {"int8", DType::i8},
        {"uint8", DType::u8},    {"int16", DType::i16},  {"uint16", DType::u16},   {"int32", DType::i32},
        {"int", DType::i32},     {"uint32", DType::u32}, {"int64", DType::i64},    {"uint64", DType::u64},
    };
    for (const auto& [name, dtype] : kNames)
        if (name == text) return dtype;
    value.reject("an element type such as float32, uint8 or int64");
}

void add_conversions(TransformTable& table) {
    table["Transpose"] = make_transpose;
    table["Cast"] = make_cast;
    table["ToTensor"] = make_to_tensor;
    table["AlignImageChannel"] = make_align_image_channel;
    table["LabelShift"] = make_label_shift;
    for (const char* name : {"ToArray", "ToNDArray", "ToPILImage", "DecodeImage", "ParseDecodeImagenet",
                             "ParseDecodeCoco", "ParseDecodeVoc"})
        table[name] = make_nothing;
    for (const char* name : {"Collect", "SquadV1", "SquadV1ModelZoo"}) table[name] = make_squad_nothing;
}

}  // namespace kilter
