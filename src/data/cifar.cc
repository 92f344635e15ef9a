// CIFAR-10 and CIFAR-100 in their binary form: records of one or two labels and three planes of 32 x 32 bytes.
#include "base/fail.h"
#include "base/mapped_file.h"
#include "data/dataset_table.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSide = 32;
constexpr size_t kPlane = kSide * kSide;

class CifarRecords : public Dataset {
  public:
    // CIFAR-100 puts a coarse label before the fine one.
    CifarRecords(const std::vector<fs::path>& files, size_t labels)
        : labels_(labels), record_(labels + 3 * kPlane) {
        for (const fs::path& path : files) {
            auto file = MappedFile::open(path);
            const size_t bytes = file->bytes().size();
            require(bytes > 0 && bytes % record_ == 0,
                    "{}: {} bytes are no whole number of records of {} bytes", path.string(), bytes, record_);
            count_ += bytes / record_;
            files_.push_back({path.string(), std::move(file)});
        }
    }

    int64_t size() const override { return static_cast<int64_t>(count_); }

    Sample sample(int64_t index) const override {
        auto record = static_cast<size_t>(index);
        size_t file = 0;
        for (; record >= files_[file].content->bytes().size() / record_; ++file)
            record -= files_[file].content->bytes().size() / record_;
        const auto* bytes =
            reinterpret_cast<const uint8_t*>(files_[file].content->bytes().data()) + record * record_;
        Tensor image(DType::u8, {kSide, kSide, 3});
        uint8_t* pixel = image.as_mutable<uint8_t>().data();
        for (size_t i = 0; i < kPlane; ++i)
            for (size_t c = 0; c < 3; ++c) *pixel++ = bytes[labels_ + c * kPlane + i];
        return {{std::move(image)},
                class_label(bytes[labels_ - 1]),
                fmt::format("{}: record {}", files_[file].name, record)};
    }

  private:
    struct File {
        std::string name;
        std::shared_ptr<const MappedFile> content;
    };
    size_t labels_, record_, count_ = 0;
    std::vector<File> files_;
};

DatasetPointer open_cifar(const Settings& settings, const std::string& folder, size_t labels,
                          const std::vector<std::string>& train, const std::string& test) {
    settings.allow_keys({"root", "train", "download"});
    fs::path root = existing_path(settings, "root");
    std::error_code error;
    if (fs::is_directory(root / folder, error)) root /= folder;
    std::vector<fs::path> files;
    for (const std::string& name : settings.get("train", false) ? train : std::vector{test}) {
        files.push_back(root / name);
        if (!fs::exists(files.back(), error))
            throw Error(
                fmt::format("{}: there is no such file", files.back().string()),
                fmt::format("kilter downloads nothing: root is the folder {} of the binary version", folder));
    }
    return std::make_unique<CifarRecords>(files, labels);
}

}  // namespace

DatasetPointer make_cifar10(const Settings& settings, Ports) {
    std::vector<std::string> train;
    for (int i = 1; i <= 5; ++i) train.push_back(fmt::format("data_batch_{}.bin", i));
    return open_cifar(settings, "cifar-10-batches-bin", 1, train, "test_batch.bin");
}

DatasetPointer make_cifar100(const Settings& settings, Ports) {
    return open_cifar(settings, "cifar-100-binary", 2, {"train.bin"}, "test.bin");
}

}  // namespace kilter
