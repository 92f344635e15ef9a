#include "kilter/base/settings.h"

#include <gtest/gtest.h>

#include "kilter/base/error.h"

namespace kilter::settings_test {

std::string message(auto&& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.hint().empty() ? error.what() : std::string(error.what()) + " | " + error.hint();
    }
    return "no error";
}

TEST(Settings, WholeNumbersAreNumbersAndTheOtherWayRound) {
    EXPECT_EQ(Settings(3).as_number(), 3.0);
    EXPECT_EQ(Settings(3.0).as_int(), 3);
    EXPECT_EQ(message([] { Settings(3.5).as_int(); }), "expected a whole number, found 3.5");
    EXPECT_EQ(message([] { Settings("3").at("a.yaml:2: b").as_int(); }),
              "a.yaml:2: b: expected a whole number, found '3'");
}

TEST(Settings, OneValueIsAListOfOne) {
    EXPECT_EQ(Settings(7).as_ints(), (std::vector<int64_t>{7}));
    EXPECT_EQ(Settings(Settings::List{7, 8}).as_ints(), (std::vector<int64_t>{7, 8}));
    EXPECT_NE(message([] { (void)Settings{{"a", 1}}.as_ints(); }), "no error");
}

TEST(Settings, FindsKeysAndFallsBack) {
    Settings map{{"size", 224}, {"name", "x"}, {"on", true}};
    EXPECT_EQ(map.get("size", 1), 224);
    EXPECT_EQ(map.get("other", 1), 1);
    EXPECT_EQ(map.get("name", "y"), "x");
    EXPECT_TRUE(map.get("on", false));
    map.set("size", 3);
    EXPECT_EQ(map.get("size").as_int(), 3);
    EXPECT_EQ(message([&] { (void)map.get("mean"); }), "'mean' is missing");
    EXPECT_TRUE(Settings().as_map().empty()) << "nothing reads as an empty map";
}

TEST(Settings, UnknownKeysNameTheNearestOne) {
    const Settings map{{"bach_size", 1}};
    EXPECT_EQ(message([&] {
                  map.allow_keys({"batch_size", "shuffle"});
              }),
              "there is no key 'bach_size' | did you mean 'batch_size'?");
    EXPECT_EQ(message([&] {
                  map.allow_keys({"zzz", "shuffle"});
              }),
              "there is no key 'bach_size' | allowed: zzz, shuffle");
}

}  // namespace kilter::settings_test
