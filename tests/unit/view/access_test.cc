// access_test.cc: who may ask the debug pages.

#include "view/access.h"

#include <gtest/gtest.h>

#include <string_view>

namespace magpie::view {
namespace {

using Verdict = Access::Verdict;

Asked local(std::string_view host) {
  Asked asked{};
  asked.remote_address = "127.0.0.1:4711";
  asked.host = host;
  return asked;
}

TEST(Access, ThisMachineMayAskByANameOfLoopback) {
  const Access access({});
  for (std::string_view host :
       {"127.0.0.1:6060", "127.3.4.5", "localhost", "LocalHost:80", "[::1]:6060", "[::1]"}) {
    EXPECT_EQ(access.judge(local(host)), Verdict::allowed) << host;
  }
}

TEST(Access, ANameThatSomebodyPointedHereIsRefused) {
  const Access access({});
  for (std::string_view host : {"evil.example", "evil.example:6060", "127.0.0.1.evil.example",
                                "localhost.evil.example", "10.0.0.1", "[::2]", "0.0.0.0", ""}) {
    EXPECT_EQ(access.judge(local(host)), Verdict::foreign_host) << host;
  }
}

TEST(Access, FurtherNamesMayBeAllowed) {
  const Access access({.token = {}, .hosts = {"build-7.local"}});
  EXPECT_EQ(access.judge(local("build-7.local:6060")), Verdict::allowed);
  EXPECT_EQ(access.judge(local("build-8.local:6060")), Verdict::foreign_host);
}

TEST(Access, OtherMachinesMayNotAskWithoutAToken) {
  const Access access({});
  Asked asked = local("localhost");
  for (std::string_view from : {"10.0.0.1:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1", "nonsense"}) {
    asked.remote_address = from;
    EXPECT_EQ(access.judge(asked), Verdict::foreign_client) << from;
  }
  for (std::string_view from :
       {"127.0.0.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "", "@name", "/run/socket"}) {
    asked.remote_address = from;
    EXPECT_EQ(access.judge(asked), Verdict::allowed) << from;
  }
}

TEST(Access, WithATokenEverybodyShowsIt) {
  const Access access({.token = "open sesame", .hosts = {}});
  Asked asked = local("example.org");
  EXPECT_EQ(access.judge(asked), Verdict::needs_token);
  asked.token = "open";
  EXPECT_EQ(access.judge(asked), Verdict::needs_token);
  asked.token = "open sesame!";
  EXPECT_EQ(access.judge(asked), Verdict::needs_token);
  asked.token = "open sesame";
  EXPECT_EQ(access.judge(asked), Verdict::allowed);
  asked.token = "";
  asked.authorization = "Bearer open sesame";
  asked.remote_address = "10.0.0.1:1";
  EXPECT_EQ(access.judge(asked), Verdict::allowed);
  asked.authorization = "Basic open sesame";
  EXPECT_EQ(access.judge(asked), Verdict::needs_token);
}

TEST(Access, APageOfAnotherOriginIsRefused) {
  const Access access({});
  Asked asked = local("localhost:6060");
  asked.origin = "http://localhost:6060";
  EXPECT_EQ(access.judge(asked), Verdict::allowed);
  for (std::string_view origin : {"http://localhost:8080", "https://evil.example", "null",
                                  "http://localhost:6060.evil.example"}) {
    asked.origin = origin;
    EXPECT_EQ(access.judge(asked), Verdict::foreign_origin) << origin;
  }
}

TEST(Access, ARequestThatABrowserMadeForAnotherSiteIsRefusedEvenWithTheToken) {
  const Access access({.token = "t", .hosts = {}});
  Asked asked = local("localhost");
  asked.token = "t";
  for (std::string_view site : {"cross-site", "same-site"}) {
    asked.fetch_site = site;
    EXPECT_EQ(access.judge(asked), Verdict::foreign_origin) << site;
  }
  for (std::string_view site : {"same-origin", "none"}) {
    asked.fetch_site = site;
    EXPECT_EQ(access.judge(asked), Verdict::allowed) << site;
  }
}

TEST(Access, LoopbackIsToldByTheAddress) {
  EXPECT_TRUE(is_loopback(net::Address::parse("127.255.0.1:1")));
  EXPECT_TRUE(is_loopback(net::Address::parse("[::1]:1")));
  EXPECT_TRUE(is_loopback(net::Address::unix_path("@name")));
  EXPECT_FALSE(is_loopback(net::Address::parse("0.0.0.0:1")));
  EXPECT_FALSE(is_loopback(net::Address::parse("[::]:1")));
  EXPECT_FALSE(is_loopback(net::Address()));
}

}  // namespace
}  // namespace magpie::view
