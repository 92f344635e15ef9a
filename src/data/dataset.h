// Dataset: samples for a model from files, read when they are asked for, so that their number does not matter.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/image.h"
#include "kilter/engine/program.h"

namespace kilter {

//! How files become inputs. Images are scaled to `short_side`, cropped to `size`, laid out and normalized; arrays are
//! only normalized, and only when that was asked for.
struct DataOptions {
    std::optional<float> scale;
    std::vector<float> mean, std;  // nothing, one for all channels, or one for each
    std::optional<Layout> layout;  // of images; told from the model's input otherwise
    int64_t size = 0;              // side of the crop; 0: what the model's input says
    int64_t short_side = 0;        // 0: 256/224 of the crop, as is usual for ImageNet
};

class Dataset {
  public:
    virtual ~Dataset() = default;
    virtual int64_t size() const = 0;
    //! Samples first … first + count - 1, stacked along the first axis: one tensor for each input of the model.
    //! Throws Error that names the file. Thread-safe.
    virtual std::vector<Tensor> read(int64_t first, int64_t count) const = 0;
};

//! `sources` are one file or folder, or NAME=FILE for every input of the model. Files: .npy, whose first axis counts the
//! samples; .npz with arrays named like the inputs. Folders: of .npy files, each one sample (or several, when the rank says
//! so), in the order of their names; or of JPEG and PNG images. Throws Error when they do not fit the inputs.
std::unique_ptr<Dataset> open_dataset(const std::vector<std::string>& sources,
                                      const std::vector<Port>& inputs, const DataOptions& options = {});

}  // namespace kilter
