// Operators on strings: what the onnx package's cases do not cover.
#include "ops/run_op.h"

namespace kilter::text_test {

using testing::attributes;
using testing::error_of;
using testing::run_op;
using Strings = std::vector<std::string>;

Tensor words(const Strings& texts) { return Tensor::strings({static_cast<int64_t>(texts.size())}, texts); }

TEST(Text, SplitsLikePython) {
    const auto split = [](const char* text, const char* delimiter, int64_t most) {
        const std::vector<Tensor> results = run_op(
            "StringSplit", {words({text})}, attributes({{"delimiter", delimiter}, {"maxsplit", most}}), 2);
        EXPECT_EQ(results[1].to_ints()[0], results[0].dim(1));
        return results[0].as_strings();
    };
    EXPECT_EQ(split("  a b  c ", "", 1), (Strings{"a", "b  c"}));
    EXPECT_EQ(split("a::b:::c", "::", 9), (Strings{"a", "b", ":c"}));
    EXPECT_EQ(split("a,b,c", ",", 0), (Strings{"a,b,c"}));
    EXPECT_EQ(split("   ", "", 5), Strings{});
    EXPECT_EQ(split("", ",", 5), (Strings{""}));
}

TEST(Text, SaysWhatIsWrong) {
    EXPECT_NE(error_of([] {
                  run_op("RegexFullMatch", {words({"a"})}, attributes({{"pattern", std::string("(a")}}));
              }).find("'(a'"),
              std::string::npos);
    EXPECT_NE(error_of([] {
                  run_op("RegexFullMatch", {words({std::string(100000, 'a')})},
                         attributes({{"pattern", std::string("(a|b)*")}}));
              }).find("too long"),
              std::string::npos);
    EXPECT_NE(error_of([] {
                  run_op("StringConcat", {words({"a"}), Tensor::scalar<int64_t>(1)});
              }).find("strings"),
              std::string::npos);
    EXPECT_NE(error_of([] {
                  run_op("TfIdfVectorizer", {words({"a"})},
                         attributes({{"mode", std::string("TF")},
                                     {"ngram_counts", std::vector<int64_t>{0, 3}},
                                     {"ngram_indexes", std::vector<int64_t>{0}},
                                     {"pool_strings", Strings{"a"}}}));
              }).find("ngram_counts"),
              std::string::npos);
}

TEST(Text, EncodesLabelsOfAnyKind) {
    const Attributes table = attributes({{"keys_floats", std::vector<float>{0.0F, NAN}},
                                         {"values_strings", Strings{"zero", "none"}},
                                         {"default_string", std::string("other")}});
    const Tensor labels =
        run_op("LabelEncoder", {Tensor::of<float>({3}, {-0.0F, NAN, 1})}, table, 1, "ai.onnx.ml")[0];
    EXPECT_EQ(labels.as_strings(), (Strings{"zero", "none", "other"}));
}

// Trees come from files: a circle must not hang, an index must not leave its list.
TEST(Text, RefusesTreesThatEndNowhere) {
    const auto tree = [](int64_t next, int64_t feature) {
        const std::vector<int64_t> node{next};
        return attributes({{"n_targets", int64_t{1}},
                           {"tree_roots", std::vector<int64_t>{0}},
                           {"nodes_modes", Tensor::of<uint8_t>({1}, {0})},
                           {"nodes_featureids", std::vector<int64_t>{feature}},
                           {"nodes_splits", Tensor::of<float>({1}, {0})},
                           {"nodes_truenodeids", node},
                           {"nodes_falsenodeids", node},
                           {"nodes_trueleafs", std::vector<int64_t>{0}},
                           {"nodes_falseleafs", std::vector<int64_t>{0}},
                           {"leaf_targetids", std::vector<int64_t>{0}},
                           {"leaf_weights", Tensor::of<float>({1}, {1})}});
    };
    const Tensor x = Tensor::of<float>({1, 1}, {1});
    for (const Attributes& bad : {tree(0, 0), tree(7, 0), tree(0, 3)})
        EXPECT_FALSE(error_of([&] { run_op("TreeEnsemble", {x}, bad, 1, "ai.onnx.ml"); }).empty());
}

}  // namespace kilter::text_test
