// What --data, --labels and the options beside them mean: a dataset and the transforms that make it fit a model.
#pragma once

#include <optional>

#include "kilter/data/dataset.h"
#include "kilter/data/transforms.h"

namespace kilter {

enum class Layout { nchw, nhwc };

//! How files become inputs. Images are scaled to `short_side`, cropped to `size`, laid out and normalized; arrays are
//! only normalized, and only when that was asked for.
struct DataOptions {
    std::optional<float> scale;
    std::vector<float> mean, std;  // nothing, one for all channels, or one for each
    std::optional<Layout> layout;  // of images; told from the model's input otherwise
    int64_t size = 0;              // side of the crop; 0: what the model's input says
    int64_t short_side = 0;        // 0: 256/224 of the crop, as is usual for ImageNet
    //! Text with lines "file class" or "class", or a .npy array; empty: class folders, labels inside the files, or none.
    std::string labels;
};

struct DataSource {
    std::shared_ptr<const Dataset> dataset;
    Transforms transforms;
};

//! `sources` are one file or folder, or NAME=FILE for every input of the model. Files: .npy, whose first axis counts the
//! samples; .npz with arrays named like the inputs, and "labels"; .rec, .tfrecord, idx. Folders: of .npy files, one sample
//! each; of JPEG and PNG images; of folders of images, one for each class; of TFRecord shards. Throws Error when they do not fit the inputs.
DataSource open_data(const std::vector<std::string>& sources, const std::vector<Port>& inputs,
                     const DataOptions& options = {});

}  // namespace kilter
