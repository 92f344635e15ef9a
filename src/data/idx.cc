#include "data/idx.h"

#include <cstring>

#include "base/fail.h"
#include "base/inflate.h"
#include "base/mapped_file.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

constexpr int kUnsignedBytes = 8;
constexpr size_t kMostUnpacked = size_t{1} << 30;  // twenty times MNIST

class IdxImages : public Dataset {
  public:
    IdxImages(const fs::path& images, const fs::path& labels)
        : where_(images.string()), images_(read_idx(images)) {
        require(images_.rank() == 3 && images_.size() > 0,
                "{}: expected images of samples x height x width, found {}", where_,
                to_string(images_.shape()));
        if (labels.empty()) return;
        labels_ = read_idx(labels);
        require(labels_.rank() == 1 && labels_.dim(0) == images_.dim(0),
                "{}: {} labels for the {} images of {}", labels.string(), to_string(labels_.shape()),
                images_.dim(0), where_);
    }

    int64_t size() const override { return images_.dim(0); }

    Sample sample(int64_t index) const override {
        const int64_t pixels = images_.dim(1) * images_.dim(2);
        // Not aligned, but bytes need no alignment; the copy of a Tensor keeps the file mapped.
        Tensor image = Tensor::mapped(DType::u8, {images_.dim(1), images_.dim(2), 1},
                                      static_cast<const uint8_t*>(images_.raw()) + index * pixels,
                                      std::make_shared<const Tensor>(images_));
        Label label;
        if (!labels_.empty()) label = class_label(labels_.as<uint8_t>()[static_cast<size_t>(index)]);
        return {{std::move(image)}, std::move(label), fmt::format("{}: image {}", where_, index)};
    }

  private:
    std::string where_;
    Tensor images_, labels_;
};

// The four files have gone by these names, in these places.
fs::path find_idx(const fs::path& root, const std::string& part, const std::string& kind) {
    std::error_code error;
    const char* dims = kind == "images" ? "idx3" : "idx1";
    for (const char* folder : {"", "MNIST", "FashionMNIST", "MNIST/raw", "FashionMNIST/raw", "raw"})
        for (const char* joint : {"-", "."})
            for (const char* end : {"", ".gz"}) {
                fs::path path =
                    root / folder / fmt::format("{}-{}{}{}-ubyte{}", part, kind, joint, dims, end);
                if (fs::exists(path, error)) return path;
            }
    throw Error(fmt::format("{}: there is no file {}-{}-{}-ubyte", root.string(), part, kind, dims),
                "kilter downloads nothing: root is the folder with the files of MNIST or Fashion-MNIST");
}

}  // namespace

Tensor parse_idx(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper) {
    const auto at = [&](size_t i) { return std::to_integer<int>(bytes[i]); };
    require(bytes.size() >= 4 && at(0) == 0 && at(1) == 0,
            "not an idx file: it does not start with two zero bytes");
    require(at(2) == kUnsignedBytes, "elements of type {}, expected {} (unsigned bytes)", at(2),
            kUnsignedBytes);
    const auto rank = static_cast<size_t>(at(3));
    const size_t header = 4 + 4 * rank;
    require(rank >= 1 && rank <= 8 && bytes.size() >= header, "a damaged header with {} dimensions", rank);
    Shape shape;
    for (size_t i = 4; i < header; i += 4)
        shape.push_back(int64_t{at(i)} << 24 | at(i + 1) << 16 | at(i + 2) << 8 | at(i + 3));
    const int64_t count = element_count(shape);
    require(static_cast<uint64_t>(count) == bytes.size() - header, "{} says {} bytes, the file holds {}",
            to_string(shape), count, bytes.size() - header);
    return Tensor::mapped(DType::u8, shape, bytes.data() + header, std::move(keeper));
}

Tensor read_idx(const fs::path& path) {
    const auto file = MappedFile::open(path);
    try {
        if (!is_gzip(file->bytes())) return parse_idx(file->bytes(), file);
        const auto unpacked =
            std::make_shared<const std::vector<std::byte>>(gunzip(file->bytes(), kMostUnpacked));
        return parse_idx(*unpacked, unpacked);
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

bool is_idx_name(const fs::path& path) {
    const std::string name = (path.extension() == ".gz" ? path.stem() : path.filename()).string();
    return name.ends_with("idx3-ubyte") || name.ends_with("idx1-ubyte");
}

DatasetPointer open_idx(const fs::path& images, const fs::path& labels) {
    if (!labels.empty()) return std::make_unique<IdxImages>(images, labels);
    // The labels have the same name but for these two words.
    std::string name = images.filename().string();
    for (const auto& [from, to] : {std::pair("images", "labels"), {"idx3", "idx1"}})
        if (const size_t position = name.find(from); position != std::string::npos)
            name.replace(position, std::strlen(from), to);
    const fs::path beside = images.parent_path() / name;
    std::error_code error;
    return std::make_unique<IdxImages>(images,
                                       beside != images && fs::exists(beside, error) ? beside : fs::path());
}

DatasetPointer make_idx(const Settings& settings, Ports) {
    settings.allow_keys({"root", "train", "download"});
    const fs::path root = existing_path(settings, "root");
    const std::string part = settings.get("train", false) ? "train" : "t10k";
    const fs::path images = find_idx(root, part, "images");
    return open_idx(images, find_idx(root, part, "labels"));
}

}  // namespace kilter
