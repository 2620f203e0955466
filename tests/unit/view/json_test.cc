// json_test.cc: the writer of JSON.

#include "view/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace magpie::view {
namespace {

std::string quoted(std::string_view text) { return JsonWriter().value(text).take(); }

TEST(Json, CommasStandBetweenMembersAndElementsOnly) {
  JsonWriter json;
  json.begin_object().member("a", 1).key("b").begin_array().value(true).value("x").begin_object();
  json.end_object().end_array().key("c").null().end_object();
  EXPECT_EQ(json.take(), R"({"a":1,"b":[true,"x",{}],"c":null})");
}

TEST(Json, QuotesBackslashesAndControlCharactersAreEscaped) {
  EXPECT_EQ(quoted("a\"b\\c\n\x01"), R"("a\"b\\c\u000a\u0001")");
}

TEST(Json, BytesThatAreNotUtf8AreReplaced) {
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(quoted("gr\xC3\xBC\xC3\x9F"), "\"gr\xC3\xBC\xC3\x9F\"");
  EXPECT_EQ(quoted("\xF0\x9F\x90\xA6"), "\"\xF0\x9F\x90\xA6\"");
  EXPECT_EQ(quoted("\xFFx"), "\"" + replacement + "x\"");
  EXPECT_EQ(quoted("\xC3"), "\"" + replacement + "\"");                    // cut off
  EXPECT_EQ(quoted("\xC0\xAF"), "\"" + replacement + replacement + "\"");  // overlong
  EXPECT_EQ(quoted("\xED\xA0\x80"),                                        // a surrogate
            "\"" + replacement + replacement + replacement + "\"");
}

TEST(Json, NumbersThatAreNotFiniteAreNull) {
  EXPECT_EQ(JsonWriter().value(std::numeric_limits<double>::infinity()).take(), "null");
  EXPECT_EQ(JsonWriter().value(std::numeric_limits<double>::quiet_NaN()).take(), "null");
  EXPECT_EQ(JsonWriter().value(0.25).take(), "0.25");
}

TEST(Json, AddressesAreHexadecimalStrings) {
  EXPECT_EQ(JsonWriter().address(0xdeadbeefcafe).take(), R"("0xdeadbeefcafe")");
  EXPECT_EQ(JsonWriter().address(0).take(), R"("0x0")");
}

}  // namespace
}  // namespace magpie::view
