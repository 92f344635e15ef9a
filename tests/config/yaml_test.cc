// YAML as Settings: values, places, and text that is meant to do harm.
#include "config/yaml.h"

#include <gtest/gtest.h>

#include "config/testing.h"

namespace kilter::yaml_test {

Settings parse(std::string_view text) { return parse_yaml(text, "a.yaml"); }

std::string yaml_error(std::string_view text) {
    try {
        parse(text);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(Yaml, PlainValuesHaveTheirTypesAndQuotedOnesAreText) {
    const Settings map = parse(R"(
a: 3
b: -0x1F
c: 1_000
d: 1e-2
e: .5
f: -.inf
g: 'true'
h: "3"
i: Yes
j: off
k:
l: ~
m: 007
n: 12:30
o: !!str 5
p: 1.5.0
)");
    EXPECT_EQ(map.get("a").as_int(), 3);
    EXPECT_EQ(map.get("b").as_int(), -31);
    EXPECT_EQ(map.get("c").as_int(), 1000);
    EXPECT_EQ(map.get("d").as_number(), 0.01);
    EXPECT_EQ(map.get("e").as_number(), 0.5);
    EXPECT_LT(map.get("f").as_number(), -1e300);
    EXPECT_EQ(map.get("g").as_text(), "true");
    EXPECT_EQ(map.get("h").as_text(), "3");
    EXPECT_TRUE(map.get("i").as_bool());
    EXPECT_FALSE(map.get("j").as_bool());
    EXPECT_TRUE(map.get("k").is_null());
    EXPECT_TRUE(map.get("l").is_null());
    for (const char* key : {"m", "n", "o", "p"}) EXPECT_TRUE(map.get(key).is_text()) << key;
}

TEST(Yaml, ValuesKnowWhereTheyStand) {
    const Settings map = parse("a:\n  b:\n    - 1\n    - c: 2\n      d: 3\n");
    const Settings& list = map.get("a").get("b");
    EXPECT_EQ(list.where(), "a.yaml:2: a.b");
    EXPECT_EQ(list.as_list()[0].where(), "a.yaml:3: a.b[0]");
    EXPECT_EQ(list.as_list()[1].get("d").where(), "a.yaml:5: a.b[1].d");
}

TEST(Yaml, AnchorsAndMergedMaps) {
    const Settings map = parse("a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}\nd: {<<: [*x, {r: 4}]}\n");
    EXPECT_EQ(map.get("b").get("q", 0), 2);
    EXPECT_EQ(map.get("c").get("p", 0), 1);
    EXPECT_EQ(map.get("c").get("q", 0), 3);
    EXPECT_EQ(map.get("d").get("r", 0), 4);
}

TEST(Yaml, RepeatedKeysAreErrors) {
    EXPECT_EQ(yaml_error("a:\n  b: 1\n  c: 2\n  b: 3\n"), "a.yaml:4: a.b: this key was given before");
    EXPECT_EQ(yaml_error("a: {b: 1}\nc: {b: 1}\n"), "no error");
}

TEST(Yaml, BrokenTextIsAnErrorWithItsPlace) {
    EXPECT_TRUE(contains(yaml_error("a: [1, 2\nb: 3\n"), "a.yaml:2:"));
    EXPECT_TRUE(contains(yaml_error("a: \"open\n"), "a.yaml:1:9: no valid YAML"));
    EXPECT_TRUE(contains(yaml_error("a: *nowhere\n"), "no valid YAML"));
    EXPECT_EQ(yaml_error("a: &x [*x]\n"), "a.yaml:1: a[0]: an alias stands inside of what it repeats");
    EXPECT_EQ(yaml_error("a: 1\n---\nb: 2\n"), "a.yaml:2: a second document begins, expected one");
    EXPECT_TRUE(contains(yaml_error("a: !!python/object:os.system x\n"), "has no meaning here"));
    EXPECT_TRUE(contains(yaml_error("? [a, b]\n: 1\n"), "a key must be text"));
    EXPECT_TRUE(contains(yaml_error(std::string(5 << 20, ' ')), "larger than 4 MB"));
}

TEST(Yaml, AliasesCannotExplode) {
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; ++i) {
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
        for (int j = 0; j < 10; ++j) bomb += (j > 0 ? ", *a" : "*a") + std::to_string(i - 1);
        bomb += "]\n";
    }
    EXPECT_TRUE(contains(yaml_error(bomb), "more than 100000 values"));
    EXPECT_TRUE(
        contains(yaml_error("a: " + std::string(70, '[') + std::string(70, ']')), "inside each other"));
    EXPECT_NE(yaml_error("a: " + std::string(100'000, '[')), "no error");
    EXPECT_NE(yaml_error(std::string(100'000, '-')), "crash");
}

}  // namespace kilter::yaml_test
