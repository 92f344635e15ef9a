
#include "base/fail.h"
#include "base/spelling.h"
#include "data/dataset_table.h"

namespace kilter {
namespace {

using Factory = DatasetPointer (*)(const Settings&, Ports);

// The old name of two datasets: the keys tell which one is meant.
DatasetPointer make_imagenet(const Settings& settings, Ports inputs) {
    return settings.has("data_path") ? make_imagenet_raw(settings, inputs)
                                     : make_image_record(settings, inputs);
}

const std::map<std::string, Factory, std::less<>>& table() {
    static const std::map<std::string, Factory, std::less<>> kTable{
        {"ImageFolder", make_image_folder},
        {"ImagenetRaw", make_imagenet_raw},
        {"Imagenet", make_imagenet},
        {"ImageRecord", make_image_record},
        {"TFRecordDataset", make_image_record},
        {"COCORecord", make_image_record},
        {"VOCRecord", make_image_record},
        {"COCORaw", make_coco},
        {"RecordIO", make_recordio},
        {"NumPy", make_numpy},
        {"MNIST", make_idx},
        {"FashionMNIST", make_idx},
        {"CIFAR10", make_cifar10},
        {"CIFAR100", make_cifar100},
        {"GLUE", make_glue},
        {"SQuAD", make_squad},
        {"dummy", make_dummy},
        {"dummy_v2", make_dummy_v2},
    };
    return kTable;
}

}  // namespace

std::unique_ptr<Dataset> make_dataset(const Component& component, std::span<const Port> inputs) {
    const auto found = table().find(component.name);
    if (found == table().end())
        fail_unknown("dataset", component.name, dataset_names(), component.settings.where());
    try {
        return found->second(component.settings, inputs);
    } catch (const Error& error) {
        throw error.in(component.name);
    }
}

std::vector<std::string> dataset_names() {
    std::vector<std::string> names;
    for (const auto& [name, factory] : table()) names.push_back(name);
    return names;
}

}  // namespace kilter
