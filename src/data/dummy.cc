// Made-up samples, for speed and for tries: uniform in low … high, the same ones in every run.
#include <algorithm>

#include "base/convert.h"
#include "base/fail.h"
#include "data/dataset_table.h"
#include "data/random.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

constexpr uint64_t kSeed = 9527;  // the tools this name comes from use it
constexpr int64_t kMostElements = int64_t{1} << 30;

struct Recipe {
    Shape shape;  // of one sample
    double low = -128, high = 127;
    DType dtype = DType::f32;

    Tensor make(uint64_t stream) const {
        Tensor tensor(dtype, shape);
        Random random(kSeed, stream);
        for (int64_t i = 0; i < tensor.size(); ++i)
            store_double(dtype, tensor.raw_mutable(), i, low + random.uniform() * (high - low));
        return tensor;
    }
};

class Dummy : public Dataset {
  public:
    Dummy(int64_t size, std::vector<Recipe> inputs, std::vector<Recipe> labels)
        : size_(size), inputs_(std::move(inputs)), labels_(std::move(labels)) {}

    int64_t size() const override { return size_; }

    Sample sample(int64_t index) const override {
        Sample sample;
        uint64_t stream = static_cast<uint64_t>(index) << 16;
        for (const Recipe& recipe : inputs_) sample.inputs.push_back(recipe.make(stream++));
        if (labels_.empty()) sample.label = class_label(0);
        for (const Recipe& recipe : labels_)
            sample.label[labels_.size() == 1 ? "label" : fmt::format("label{}", sample.label.size())] =
                recipe.make(stream++);
        sample.name = fmt::format("dummy sample {}", index);
        return sample;
    }

  private:
    int64_t size_;
    std::vector<Recipe> inputs_, labels_;
};

// [[1, 2], [3]] is two shapes, [1, 2] is one.
std::vector<Shape> as_shapes(const Settings& value) {
    std::vector<Shape> shapes;
    const bool several = value.is_list() && !value.as_list().empty() && value.as_list()[0].is_list();
    for (const Settings& entry : several ? value.as_list() : Settings::List{value}) {
        shapes.push_back(entry.as_ints());
        for (const int64_t dim : shapes.back())
            if (dim < 0) entry.reject("dimensions that are not negative");
        if (element_count(shapes.back()) > kMostElements) entry.reject("a shape with fewer elements");
    }
    return shapes;
}

// One value for all inputs, or a list with one for each.
template <class Read>
auto each(const Settings& settings, std::string_view key, size_t count,
          decltype(Read{}(Settings())) fallback) {
    std::vector<decltype(fallback)> values(count, fallback);
    const Settings* given = settings.find(key);
    if (!given || given->is_null()) return values;
    const Settings::List list = given->as_list_or_one();
    if (list.size() != 1 && list.size() != count) given->reject(fmt::format("one value or {}", count));
    for (size_t i = 0; i < count; ++i) values[i] = Read{}(list[list.size() == 1 ? 0 : i]);
    return values;
}

struct ReadNumber {
    double operator()(const Settings& value) const { return value.as_number(); }
};
struct ReadType {
    DType operator()(const Settings& value) const { return as_dtype(value); }
};

std::vector<Recipe> make_recipes(const Settings& settings, const std::vector<Shape>& shapes) {
    const size_t count = shapes.size();
    const auto lows = each<ReadNumber>(settings, "low", count, -128);
    const auto highs = each<ReadNumber>(settings, "high", count, 127);
    const auto types = each<ReadType>(settings, "dtype", count, DType::f32);
    std::vector<Recipe> recipes;
    for (size_t i = 0; i < count; ++i) {
        require(lows[i] <= highs[i], "low {} lies above high {}", lows[i], highs[i]);
        require(bits(types[i]) >= 8 && types[i] != DType::complex64 && types[i] != DType::complex128,
                "{} has no made-up values", name(types[i]));
        recipes.push_back({shapes[i], lows[i], highs[i], types[i]});
    }
    return recipes;
}

}  // namespace

DatasetPointer make_dummy(const Settings& settings, Ports) {
    settings.allow_keys({"shape", "low", "high", "dtype", "label"});
    std::vector<Shape> shapes = as_shapes(settings.get("shape"));
    int64_t size = -1;
    for (Shape& shape : shapes) {
        if (shape.empty() || (size >= 0 && shape[0] != size))
            settings.get("shape").reject("shapes whose first dimension is the same number of samples");
        size = shape[0];
        shape.erase(shape.begin());
    }
    require(size > 0, "shape: there are no samples");
    return std::make_unique<Dummy>(size, make_recipes(settings, shapes), std::vector<Recipe>{});
}

DatasetPointer make_dummy_v2(const Settings& settings, Ports) {
    settings.allow_keys({"input_shape", "label_shape", "low", "high", "dtype", "samples"});
    const int64_t size = settings.get("samples", 100);
    require(size > 0, "samples: there must be one at least");
    std::vector<Recipe> labels;
    if (settings.has("label_shape"))
        for (Shape& shape : as_shapes(settings.get("label_shape")))
            labels.push_back({std::move(shape), 0, 1});
    return std::make_unique<Dummy>(size, make_recipes(settings, as_shapes(settings.get("input_shape"))),
                                   std::move(labels));
}

}  // namespace kilter
