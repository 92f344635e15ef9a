#include "data/dataset.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/npy.h"
#include "kilter/base/error.h"

namespace kilter {
namespace {

namespace fs = std::filesystem;

class DatasetTest : public testing::Test {
  protected:
    DatasetTest() : folder_(fs::path(testing::TempDir()) / "kilter_dataset") {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
    }
    ~DatasetTest() override { fs::remove_all(folder_); }

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

const std::vector<Port> kOne{port("x", DType::f32, {Dim("batch"), Dim(2)})};

TEST_F(DatasetTest, FirstAxisOfAnArrayCountsSamples) {
    const auto data = open_dataset({save("x.npy", counting({5, 2}))}, kOne);
    EXPECT_EQ(data->size(), 5);
    const std::vector<Tensor> batch = data->read(1, 2);
    EXPECT_TRUE(identical(batch.at(0), Tensor::of<float>({2, 2}, {2, 3, 4, 5})));
}

TEST_F(DatasetTest, SeveralInputsComeByName) {
    const std::vector<Port> inputs{port("ids", DType::i64, {Dim("n"), Dim(3)}),
                                   port("x", DType::f32, {Dim("n"), Dim(2)})};
    const std::string x = "x=" + save("x.npy", counting({4, 2}));
    const std::string ids = "ids=" + save("ids.npy", counting({4, 3}).converted(DType::i64));
    const auto data = open_dataset({x, ids}, inputs);
    EXPECT_EQ(data->size(), 4);
    EXPECT_EQ(data->read(0, 1).at(0).dtype(), DType::i64);
    EXPECT_NE(message([&] { open_dataset({x}, inputs); }).find("'ids'"), std::string::npos);
    EXPECT_NE(message([&] {
                  open_dataset({x, ids, "y=" + save("y.npy", counting({4}))}, inputs);
              }).find("'y'"),
              std::string::npos);
    const std::string fewer = "ids=" + save("fewer.npy", counting({3, 3}).converted(DType::i64));
    EXPECT_NE(message([&] { open_dataset({x, fewer}, inputs); }).find("samples"), std::string::npos);
}

TEST_F(DatasetTest, FolderOfArraysIsReadInOrderOfNames) {
    save("b.npy", Tensor::of<float>({2}, {3, 4}));
    save("a.npy", Tensor::of<float>({1, 2}, {1, 2}));
    const auto data = open_dataset({folder_.string()}, kOne);
    EXPECT_EQ(data->size(), 2);
    EXPECT_TRUE(identical(data->read(0, 2).at(0), Tensor::of<float>({2, 2}, {1, 2, 3, 4})));
}

TEST_F(DatasetTest, NothingIsConvertedUnlessAskedFor) {
    const std::string file = save("x.npy", Tensor::of<uint8_t>({1, 2}, {0, 255}));
    EXPECT_NE(message([&] { open_dataset({file}, kOne); }).find("u8"), std::string::npos);
    DataOptions options;
    options.scale = 1 / 255.0F;
    options.mean = {0.5F};
    EXPECT_TRUE(identical(open_dataset({file}, kOne, options)->read(0, 1).at(0),
                          Tensor::of<float>({1, 2}, {-0.5F, 0.5F})));
}

TEST_F(DatasetTest, WrongShapesNameTheFileAndTheInput) {
    const std::string text = message([&] { open_dataset({save("bad.npy", counting({5, 3}))}, kOne); });
    EXPECT_NE(text.find("bad.npy"), std::string::npos) << text;
    EXPECT_NE(text.find("'x'"), std::string::npos) << text;
    EXPECT_NE(message([&] { open_dataset({(folder_ / "none.npy").string()}, kOne); }).find("none.npy"),
              std::string::npos);
    EXPECT_NE(message([&] { open_dataset({folder_.string()}, kOne)->read(0, 1); }).find("bad.npy"),
              std::string::npos);
}

TEST_F(DatasetTest, BrokenImagesAreNamed) {
    const fs::path images = folder_ / "images";
    fs::create_directories(images);
    std::ofstream(images / "broken.jpg") << "\xFF\xD8\xFFnothing";
    const std::vector<Port> input{port("image", DType::f32, {Dim(1), Dim(3), Dim(8), Dim(8)})};
    const auto data = open_dataset({images.string()}, input);
    EXPECT_EQ(data->size(), 1);
    EXPECT_NE(message([&] { data->read(0, 1); }).find("broken.jpg"), std::string::npos);
}

TEST_F(DatasetTest, ImagesNeedAnInputThatTakesThem) {
    std::ofstream(folder_ / "a.png") << "x";
    EXPECT_NE(message([&] { open_dataset({folder_.string()}, kOne); }).find("4 dimensions"),
              std::string::npos);
    const std::vector<Port> open{port("image", DType::f32, {Dim(1), Dim(3), Dim("h"), Dim("w")})};
    EXPECT_NE(message([&] { open_dataset({folder_.string()}, open); }).find("size"), std::string::npos);
    const std::vector<Port> fixed{port("image", DType::f32, {Dim(1), Dim(3), Dim(8), Dim(8)})};
    EXPECT_NE(message([&] { open_dataset({folder_.string()}, fixed, {.size = 9}); }).find("--size"),
              std::string::npos);
}

}  // namespace
}  // namespace kilter
