// url_test.cc: URLs taken apart and put together.

#include "http/url.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace magpie::http {
namespace {

TEST(HttpUrl, ItsPartsAreFound) {
  Url url = Url::parse("HTTP://Example.COM:8080/a/b?c=d#e");
  EXPECT_EQ(url.scheme, "http");
  EXPECT_EQ(url.host, "example.com");
  EXPECT_EQ(url.port, "8080");
  EXPECT_EQ(url.target, "/a/b?c=d");
  EXPECT_EQ(url.to_string(), "http://example.com:8080/a/b?c=d");
  EXPECT_EQ(Url::parse("http://x").to_string(), "http://x/");
  EXPECT_EQ(Url::parse("http://x?q").target, "/?q");
  EXPECT_EQ(Url::parse("http://x:80/").authority(), "x");
  EXPECT_EQ(Url::parse("https://x/").host_and_port(), "x:443");
  EXPECT_EQ(Url::parse("http://[::1]:81/").host_and_port(), "[::1]:81");
  EXPECT_EQ(Url::parse("http://[::1]").host_and_port(), "[::1]:80");
}

TEST(HttpUrl, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "x", "/a", "http:/x", "ftp://x/", "http://", "http:///a", "http://x:y/",
        "http://x:99999/", "http://[::1/", "http://[::1]x/", "http://u@x/", "http://x:y:80/",
        "http://x\xff/", "http://[]/", "http://x\"/", "http://x/a b", "http://x/\r\nHost: y",
        "http://x/\x7f"}) {
    EXPECT_THROW(Url::parse(text), std::invalid_argument) << text;
  }
}

TEST(HttpUrl, LocationsAreSeenFromWhereTheyCameFrom) {
  Url url = Url::parse("http://x:81/a/b/c?d");
  EXPECT_EQ(url.resolve("http://y/z").to_string(), "http://y/z");
  EXPECT_EQ(url.resolve("//y/z").to_string(), "http://y/z");
  EXPECT_EQ(url.resolve("/z?q").to_string(), "http://x:81/z?q");
  EXPECT_EQ(url.resolve("z").to_string(), "http://x:81/a/b/z");
  EXPECT_EQ(url.resolve("../z/./y").to_string(), "http://x:81/a/z/y");
  EXPECT_EQ(url.resolve("../../../z").to_string(), "http://x:81/z");
  EXPECT_EQ(url.resolve("..").to_string(), "http://x:81/a/");
  EXPECT_EQ(url.resolve("?z").to_string(), "http://x:81/a/b/c?z");
  EXPECT_EQ(url.resolve("#z").to_string(), "http://x:81/a/b/c?d");
  EXPECT_EQ(url.resolve("/go?to=http://y/").to_string(), "http://x:81/go?to=http://y/");
  EXPECT_THROW(url.resolve("http://"), std::invalid_argument);
}

}  // namespace
}  // namespace magpie::http
