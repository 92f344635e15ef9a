#include "kilter/data/transforms.h"

#include "base/fail.h"
#include "base/spelling.h"
#include "data/transform_table.h"

namespace kilter {
namespace {

class FunctionTransform : public Transform {
  public:
    explicit FunctionTransform(SampleFunction function) : function_(std::move(function)) {}
    void apply(Sample& sample) const override { function_(sample); }

  private:
    SampleFunction function_;
};

const TransformTable& table() {
    static const TransformTable kTable = [] {
        TransformTable made;
        add_resizes(made);
        add_crops(made);
        add_flips_and_pads(made);
        add_arithmetic(made);
        add_conversions(made);
        add_imagenet(made);
        return made;
    }();
    return kTable;
}

}  // namespace

std::unique_ptr<Transform> make_transform(const Component& component, std::string_view framework) {
    const auto found = table().find(component.name);
    if (found == table().end())
        fail_unknown("transform", component.name, transform_names(), component.settings.where());
    try {
        return std::make_unique<FunctionTransform>(found->second({component.settings, framework}));
    } catch (const Error& error) {
        throw error.in(component.name);
    }
}

std::vector<std::string> transform_names() {
    std::vector<std::string> names;
    for (const auto& [name, factory] : table()) names.push_back(name);
    return names;
}

}  // namespace kilter
