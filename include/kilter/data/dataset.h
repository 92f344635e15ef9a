// Dataset: samples with their labels, read when they are asked for, so that their number does not matter.
// docs/data.md lists the datasets and their settings.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kilter/base/settings.h"
#include "kilter/data/sample.h"
#include "kilter/engine/program.h"

namespace kilter {

class Dataset {
  public:
    virtual ~Dataset() = default;
    virtual int64_t size() const = 0;
    //! Sample 0 … size() - 1; images are u8 [height, width, channels]. Thread-safe.
    //! Throws Error that names the file, and the record in it.
    virtual Sample sample(int64_t index) const = 0;
};

//! A dataset by its name in configurations (ImageFolder, ImageRecord, NumPy, …) and its settings. `inputs` are those of the
//! model when they are known: arrays and texts come by their names. Throws Error that lists the names, that says which
//! setting is wrong, or that the files do not fit.
std::unique_ptr<Dataset> make_dataset(const Component& component, std::span<const Port> inputs = {});
std::vector<std::string> dataset_names();

}  // namespace kilter
