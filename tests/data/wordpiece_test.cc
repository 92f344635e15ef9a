#include "data/wordpiece.h"

#include <fstream>

#include <gtest/gtest.h>

#include "kilter/base/error.h"

namespace kilter::wordpiece_test {

class WordPieceTest : public ::testing::Test {
  protected:
    WordPieceTest() : path_(std::filesystem::path(::testing::TempDir()) / "kilter_vocabulary.txt") {
        write(kPieces);
    }
    ~WordPieceTest() override { std::filesystem::remove(path_); }

    void write(const std::vector<std::string>& pieces) const {
        std::ofstream file(path_);
        for (const std::string& piece : pieces) file << piece << '\n';
    }

    // The pieces of a text, each with the part of the text it stands for.
    std::string split(const std::string& text, bool lower_case = true) const {
        std::string result;
        for (const Token& token : WordPiece(path_, lower_case).tokens(text)) {
            result += result.empty() ? "" : " ";
            result +=
                kPieces.at(static_cast<size_t>(token.id)) + "=" +
                text.substr(static_cast<size_t>(token.begin), static_cast<size_t>(token.end - token.begin));
        }
        return result;
    }

    const std::vector<std::string> kPieces{"[PAD]",  "[UNK]", "[CLS]", "[SEP]", "un", "##aff",
                                           "##able", "cafe",  "Cafe",  "$",     ",",  "中",
                                           "a",      "##b",   "i",     "ᄒ"};
    std::filesystem::path path_;
};

TEST_F(WordPieceTest, TakesTheLongestPiecesThatAreThere) {
    EXPECT_EQ(split("unaffable"), "un=un ##aff=aff ##able=able");
    EXPECT_EQ(split("unaffablex un"), "[UNK]=unaffablex un=un");
    EXPECT_EQ(split(""), "");
    EXPECT_EQ(split(" \t\n"), "");
}

TEST_F(WordPieceTest, PunctuationAndIdeographsStandAlone) {
    EXPECT_EQ(split("a,ab$"), "a=a ,=, a=a ##b=b $=$");
    EXPECT_EQ(split("a中a"), "a=a 中=中 a=a");
    EXPECT_EQ(split("a\u3000a\u00A0a\u2028a"), "a=a a=a a=a a=a");
}

TEST_F(WordPieceTest, LowerCaseDropsAccentsAndKeepsOffsets) {
    EXPECT_EQ(split("CAFÉ, a"), "cafe=CAFÉ ,=, a=a");
    EXPECT_EQ(split("Cafe\u0301 a"), "cafe=Cafe a=a");  // the accent is a character of its own, and dropped
    EXPECT_EQ(split("İ"), "i=İ");
    EXPECT_EQ(split("Cafe cafe", false), "Cafe=Cafe cafe=cafe");
    EXPECT_EQ(split("Café", false), "[UNK]=Café");
}

TEST_F(WordPieceTest, ControlCharactersAndBrokenUtf8AreDropped) {
    EXPECT_EQ(split(std::string("a\0b\x7F\u200B", 7)), "a=a ##b=b");
    EXPECT_EQ(split("a\xFF\xC3"), "a=a");
    EXPECT_EQ(split("\uFFFDa"), "a=a");
}

TEST_F(WordPieceTest, EndlessWordsAreUnknown) {
    EXPECT_EQ(split(std::string(101, 'a')), "[UNK]=" + std::string(101, 'a'));
}

TEST_F(WordPieceTest, VocabulariesMustHaveTheSpecialPieces) {
    write({"[PAD]", "a"});
    try {
        split("a");
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("[UNK]"), std::string::npos) << error.what();
    }
}

}  // namespace kilter::wordpiece_test
