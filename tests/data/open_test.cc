#include "kilter/data/open.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/npy.h"
#include "kilter/base/error.h"
#include "kilter/data/loader.h"

namespace kilter::open_test {

namespace fs = std::filesystem;

class OpenData : public ::testing::Test {
  protected:
    OpenData() : folder_(fs::path(::testing::TempDir()) / "kilter_open_data") {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
    }
    ~OpenData() override { fs::remove_all(folder_); }

    std::string save(const std::string& file, const Tensor& tensor) const {
        write_npy(tensor, folder_ / file);
        return (folder_ / file).string();
    }

    fs::path folder_;
};

Port port(const std::string& name, DType dtype, std::vector<Dim> dims) {
    return {name, {dtype, std::move(dims)}};
}

Tensor counting(Shape shape) {
    Tensor tensor(DType::f32, std::move(shape));
    float next = 0;
    for (float& value : tensor.as_mutable<float>()) value = next++;
    return tensor;
}

std::string message(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

// Samples first … first + count - 1, prepared and stacked.
std::vector<Tensor> read(const DataSource& source, int64_t first, int64_t count) {
    std::vector<Sample> samples;
    for (int64_t i = first; i < first + count; ++i) {
        samples.push_back(source.dataset->sample(i));
        for (const auto& transform : source.transforms) transform->apply(samples.back());
    }
    return stack(std::move(samples)).inputs;
}

const std::vector<Port> kOne{port("x", DType::f32, {Dim("batch"), Dim(2)})};

TEST_F(OpenData, FirstAxisOfAnArrayCountsSamples) {
    const auto data = open_data({save("x.npy", counting({5, 2}))}, kOne);
    EXPECT_EQ(data.dataset->size(), 5);
    const std::vector<Tensor> batch = read(data, 1, 2);
    EXPECT_TRUE(identical(batch.at(0), Tensor::of<float>({2, 2}, {2, 3, 4, 5})));
}

TEST_F(OpenData, SeveralInputsComeByName) {
    const std::vector<Port> inputs{port("ids", DType::i64, {Dim("n"), Dim(3)}),
                                   port("x", DType::f32, {Dim("n"), Dim(2)})};
    const std::string x = "x=" + save("x.npy", counting({4, 2}));
    const std::string ids = "ids=" + save("ids.npy", counting({4, 3}).converted(DType::i64));
    const auto data = open_data({x, ids}, inputs);
    EXPECT_EQ(data.dataset->size(), 4);
    EXPECT_EQ(read(data, 0, 1).at(0).dtype(), DType::i64);
    EXPECT_NE(message([&] { open_data({x}, inputs); }).find("'ids'"), std::string::npos);
    EXPECT_NE(message([&] {
                  open_data({x, ids, "y=" + save("y.npy", counting({4}))}, inputs);
              }).find("'y'"),
              std::string::npos);
    const std::string fewer = "ids=" + save("fewer.npy", counting({3, 3}).converted(DType::i64));
    EXPECT_NE(message([&] { open_data({x, fewer}, inputs); }).find("samples"), std::string::npos);
}

TEST_F(OpenData, FolderOfArraysIsReadInOrderOfNames) {
    save("b.npy", Tensor::of<float>({2}, {3, 4}));
    save("a.npy", Tensor::of<float>({1, 2}, {1, 2}));
    const auto data = open_data({folder_.string()}, kOne);
    EXPECT_EQ(data.dataset->size(), 2);
    EXPECT_TRUE(identical(read(data, 0, 2).at(0), Tensor::of<float>({2, 2}, {1, 2, 3, 4})));
}

TEST_F(OpenData, NothingIsConvertedUnlessAskedFor) {
    const std::string file = save("x.npy", Tensor::of<uint8_t>({1, 2}, {0, 255}));
    EXPECT_NE(message([&] { open_data({file}, kOne); }).find("u8"), std::string::npos);
    DataOptions options;
    options.scale = 1 / 255.0F;
    options.mean = {0.5F};
    EXPECT_TRUE(identical(read(open_data({file}, kOne, options), 0, 1).at(0),
                          Tensor::of<float>({1, 2}, {-0.5F, 0.5F})));
}

TEST_F(OpenData, WrongShapesNameTheFileAndTheInput) {
    const std::string text = message([&] { open_data({save("bad.npy", counting({5, 3}))}, kOne); });
    EXPECT_NE(text.find("bad.npy"), std::string::npos) << text;
    EXPECT_NE(text.find("'x'"), std::string::npos) << text;
    EXPECT_NE(message([&] { open_data({(folder_ / "none.npy").string()}, kOne); }).find("none.npy"),
              std::string::npos);
    EXPECT_NE(message([&] { read(open_data({folder_.string()}, kOne), 0, 1); }).find("bad.npy"),
              std::string::npos);
}

TEST_F(OpenData, BrokenImagesAreNamed) {
    const fs::path images = folder_ / "images";
    fs::create_directories(images);
    std::ofstream(images / "broken.jpg") << "\xFF\xD8\xFFnothing";
    const std::vector<Port> input{port("image", DType::f32, {Dim(1), Dim(3), Dim(8), Dim(8)})};
    const auto data = open_data({images.string()}, input);
    EXPECT_EQ(data.dataset->size(), 1);
    EXPECT_NE(message([&] { read(data, 0, 1); }).find("broken.jpg"), std::string::npos);
}

TEST_F(OpenData, ImagesNeedAnInputThatTakesThem) {
    std::ofstream(folder_ / "a.png") << "x";
    EXPECT_NE(message([&] { open_data({folder_.string()}, kOne); }).find("4 dimensions"), std::string::npos);
    const std::vector<Port> open{port("image", DType::f32, {Dim(1), Dim(3), Dim("h"), Dim("w")})};
    EXPECT_NE(message([&] { open_data({folder_.string()}, open); }).find("size"), std::string::npos);
    const std::vector<Port> fixed{port("image", DType::f32, {Dim(1), Dim(3), Dim(8), Dim(8)})};
    EXPECT_NE(message([&] { open_data({folder_.string()}, fixed, {.size = 9}); }).find("--size"),
              std::string::npos);
}

int64_t label_of(const DataSource& source, int64_t index) {
    return source.dataset->sample(index).label.at("label").to_ints().at(0);
}

TEST_F(OpenData, LabelsComeFromAListOrFromTheFile) {
    const std::string x = save("x.npy", counting({2, 2}));
    EXPECT_TRUE(open_data({x}, kOne).dataset->sample(0).label.empty());
    std::ofstream(folder_ / "labels.txt") << "7\n8\n";
    EXPECT_EQ(label_of(open_data({x}, kOne, {.labels = (folder_ / "labels.txt").string()}), 1), 8);
    EXPECT_EQ(label_of(open_data({"x=" + x}, kOne, {.labels = (folder_ / "labels.txt").string()}), 0), 7);
    const std::string y = save("y.npy", Tensor::of<int32_t>({2}, {5, 6}));
    const DataSource source = open_data({x}, kOne, {.labels = y});
    EXPECT_EQ(label_of(source, 1), 6);
    EXPECT_EQ(source.dataset->sample(1).label.at("label").dtype(), DType::i64);
    EXPECT_EQ(source.dataset->sample(1).label.at("label").rank(), 0);
    std::ofstream(folder_ / "labels.txt") << "7\n";
    EXPECT_NE(message([&] {
                  open_data({x}, kOne, {.labels = (folder_ / "labels.txt").string()});
              }).find("1 labels"),
              std::string::npos);
}

TEST_F(OpenData, IdxFilesBringTheirLabelsAndAreNotScaled) {
    const fs::path images = folder_ / "t10k-images-idx3-ubyte";
    std::ofstream(images, std::ios::binary) << std::string("\0\0\10\3\0\0\0\1\0\0\0\2\0\0\0\2\0\1\2\377", 20);
    std::ofstream(folder_ / "t10k-labels-idx1-ubyte", std::ios::binary)
        << std::string("\0\0\10\1\0\0\0\1\11", 9);
    const std::vector<Port> input{port("image", DType::f32, {Dim("n"), Dim(1), Dim(2), Dim(2)})};
    for (const fs::path& path : {images, folder_}) {
        const DataSource source = open_data({path.string()}, input);
        EXPECT_EQ(label_of(source, 0), 9);
        EXPECT_TRUE(identical(read(source, 0, 1).at(0), Tensor::of<float>({1, 1, 2, 2}, {0, 1, 2, 255})));
    }
}

TEST_F(OpenData, RecordsRefuseASecondListOfLabels) {
    std::ofstream(folder_ / "a.rec") << "x";
    const std::vector<Port> input{port("image", DType::f32, {Dim("n"), Dim(3), Dim(8), Dim(8)})};
    const std::string file = (folder_ / "a.rec").string();
    EXPECT_NE(message([&] { open_data({file}, input, {.labels = "labels.txt"}); }).find("--labels"),
              std::string::npos);
    EXPECT_NE(message([&] { open_data({file}, input); }).find("a.rec: record 0"), std::string::npos);
}

}  // namespace kilter::open_test
