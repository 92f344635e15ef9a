#include "data/records.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "data/example.h"
#include "data/idx.h"
#include "data/image_records.h"
#include "kilter/base/error.h"

namespace kilter::records_test {

using Buffer = std::vector<std::byte>;

template <class T>
void append(Buffer& buffer, const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    buffer.insert(buffer.end(), bytes, bytes + sizeof(T));
}

uint32_t masked(std::span<const std::byte> bytes) {
    const uint32_t crc = crc32c(bytes);
    return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

Buffer tfrecord(const std::string& content) {
    Buffer buffer;
    append(buffer, static_cast<uint64_t>(content.size()));
    append(buffer, masked(buffer));
    const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
    buffer.insert(buffer.end(), bytes.begin(), bytes.end());
    append(buffer, masked(bytes));
    return buffer;
}

Buffer part(uint32_t flag, const std::string& content) {
    Buffer buffer;
    append(buffer, uint32_t{0xCED7230A});
    append(buffer, flag << 29 | static_cast<uint32_t>(content.size()));
    for (const char c : content) buffer.push_back(static_cast<std::byte>(c));
    while (buffer.size() % 4 != 0) buffer.push_back(std::byte{0});
    return buffer;
}

Buffer joined(std::initializer_list<Buffer> parts) {
    Buffer all;
    for (const Buffer& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Records, TfRecordsAreFoundAndChecked) {
    const Buffer file = joined({tfrecord("one"), tfrecord(""), tfrecord("three")});
    const RecordIndex index = index_tfrecord(file);
    ASSERT_EQ(index.offsets.size(), 3U);
    EXPECT_EQ(index.damage, "");
    EXPECT_EQ(text(tfrecord_at(file, index.offsets[0])), "one");
    EXPECT_EQ(text(tfrecord_at(file, index.offsets[1])), "");
    EXPECT_EQ(text(tfrecord_at(file, index.offsets[2])), "three");
}

TEST(Records, EveryDamagedBitOfATfRecordIsFound) {
    const Buffer file = joined({tfrecord("one"), tfrecord("two")});
    for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
        Buffer damaged = file;
        damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        const RecordIndex index = index_tfrecord(damaged);
        bool found = !index.damage.empty();
        for (const size_t offset : index.offsets) {
            try {
                tfrecord_at(damaged, offset);
            } catch (const Error&) {
                found = true;
            }
        }
        EXPECT_TRUE(found) << bit;
    }
}

TEST(Records, PartsOfARecordAreJoinedByTheMagicNumber) {
    const Buffer file = joined({part(0, "whole"), part(1, "ab"), part(2, ""), part(3, "c"), part(0, "end")});
    const RecordIndex index = index_recordio(file);
    ASSERT_EQ(index.offsets.size(), 3U);
    EXPECT_EQ(index.damage, "");
    Buffer memory;
    EXPECT_EQ(text(recordio_at(file, index.offsets[0], memory)), "whole");
    const std::string magic = "\x0A\x23\xD7\xCE";
    EXPECT_EQ(text(recordio_at(file, index.offsets[1], memory)), "ab" + magic + magic + "c");
    EXPECT_EQ(text(recordio_at(file, index.offsets[2], memory)), "end");
}

TEST(Records, TruncatedFilesNameTheDamage) {
    for (const auto& [file, index_of] :
         {std::pair(joined({tfrecord("one"), tfrecord("two")}), &index_tfrecord),
          std::pair(joined({part(0, "one"), part(1, "a"), part(3, "b")}), &index_recordio)}) {
        const size_t second = index_of(file).offsets.at(1);
        // The padding behind the last part carries nothing.
        for (size_t length = second + 1; length + 4 < file.size(); ++length) {
            const RecordIndex index = index_of(std::span(file).first(length));
            EXPECT_EQ(index.offsets.size(), 2U) << length;
            EXPECT_NE(index.damage, "") << length;
        }
    }
    Buffer memory;
    EXPECT_THROW(recordio_at(joined({part(2, "x")}), 0, memory), Error);
    EXPECT_THROW(recordio_at(joined({part(1, "x"), part(0, "y")}), 0, memory), Error);
    EXPECT_THROW(recordio_at(part(7, "x"), 0, memory), Error);
    EXPECT_THROW(recordio_at({}, 5, memory), Error);
}

TEST(Records, ExamplesAreParsedPackedOrNot) {
    // features { feature { key: "i" value { int64_list { value: [1, 2] value: 3 } } } }, then the same with floats and bytes
    const std::string ints = "\x0A\x0F\x0A\x0D\x0A\x01i\x12\x08\x1A\x06\x0A\x02\x01\x02\x08\x03";
    const Example example = parse_example(std::as_bytes(std::span(ints.data(), ints.size())));
    EXPECT_EQ(example.at("i").ints, (std::vector<int64_t>{1, 2, 3}));
    const std::string bytes =
        "\x0A\x0F\x0A\x0D\x0A\x01"
        "b\x12\x08\x0A\x06\x0A\x01x\x0A\x01y";
    const Example other = parse_example(std::as_bytes(std::span(bytes.data(), bytes.size())));
    EXPECT_EQ(other.at("b").bytes, (std::vector<std::string_view>{"x", "y"}));
    for (size_t length = 1; length < ints.size(); ++length)
        EXPECT_THROW(parse_example(std::as_bytes(std::span(ints.data(), length))), Error) << length;
}

// Found by fuzzing: a field of the right number with the wrong wire type is not ours.
TEST(Records, ExamplesSkipFieldsOfOtherTypes) {
    const std::string number = "\x08\x01\x0A\x02\x08\x01";
    EXPECT_TRUE(parse_example(std::as_bytes(std::span(number.data(), number.size()))).empty());
}

TEST(Records, ImageRecordsWithoutAnImageAreErrors) {
    EXPECT_THROW(parse_image_rec({}), Error);
    EXPECT_THROW(parse_image_rec(Buffer(24)), Error);
    EXPECT_THROW(parse_image_rec(Buffer(24, std::byte{0xFF})), Error);
    EXPECT_THROW(parse_image_example({}), Error);
}

TEST(Idx, SizesMustAgree) {
    const auto parse = [](const std::vector<int>& values) {
        Buffer bytes;
        for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
        return parse_idx(bytes, nullptr).shape();
    };
    EXPECT_EQ(parse({0, 0, 8, 1, 0, 0, 0, 2, 7, 8}), (Shape{2}));
    EXPECT_EQ(parse({0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 9}), (Shape{0, 9}));
    EXPECT_THROW(parse({}), Error);
    EXPECT_THROW(parse({0, 0, 9, 1, 0, 0, 0, 2, 7, 8}), Error);
    EXPECT_THROW(parse({0, 0, 8, 1, 0, 0, 0, 2, 7}), Error);
    EXPECT_THROW(parse({0, 0, 8, 0}), Error);
    EXPECT_THROW(parse({0, 0, 8, 255, 0, 0}), Error);
    EXPECT_THROW(parse({0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255}), Error);
    EXPECT_THROW(parse({31, 139, 8, 0}), Error);
}

}  // namespace kilter::records_test
