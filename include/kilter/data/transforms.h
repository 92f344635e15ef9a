// Transform: one step of the way from what a dataset holds to what a model takes.
// docs/data.md lists the transforms and their settings.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kilter/base/settings.h"
#include "kilter/data/sample.h"

namespace kilter {

class Transform {
  public:
    virtual ~Transform() = default;
    //! Thread-safe, and a function of the sample (with its index) only. Throws Error when the sample does not fit.
    virtual void apply(Sample& sample) const = 0;
};

using Transforms = std::vector<std::unique_ptr<Transform>>;

//! A transform by its name in configurations (Resize, CenterCrop, Normalize, …) and its settings. `framework` is that of the
//! configuration: a few names mean different things in different ones (docs/data.md). Throws Error that lists the names.
std::unique_ptr<Transform> make_transform(const Component& component, std::string_view framework = {});
std::vector<std::string> transform_names();

}  // namespace kilter
