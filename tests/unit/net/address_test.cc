#include <gtest/gtest.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <netdb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>
#include <string>
#include <system_error>

namespace magpie::net {
namespace {

TEST(Address, ParsesWhatItPrints) {
  for (const char* text : {"127.0.0.1:80", "0.0.0.0:0", "[::1]:65535", "[2001:db8::1]:443"}) {
    EXPECT_EQ(Address::parse(text).to_string(), text);
  }
  EXPECT_EQ(Address::parse("[::1]:80").host(), "::1");
  EXPECT_EQ(Address::parse("1.2.3.4:80").port(), 80);
  EXPECT_EQ(Address::parse("1.2.3.4:80").with_port(81).to_string(), "1.2.3.4:81");
  EXPECT_EQ(Address().to_string(), "");
}

TEST(Address, SaysWhatIsWrongWithAText) {
  for (const char* text :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80",
        "[::1:80", "1.2.3:80", "localhost:80", "1.2.3.4:80 ", "[::1]80"}) {
    EXPECT_THROW((void)Address::parse(text), std::invalid_argument) << text;
  }
}

TEST(Address, OfUnixSockets) {
  EXPECT_EQ(Address::unix_path("/tmp/x").to_string(), "/tmp/x");
  EXPECT_EQ(Address::unix_path("@name").to_string(), "@name");
  EXPECT_THROW((void)Address::unix_path(""), std::invalid_argument);
  EXPECT_THROW((void)Address::unix_path(std::string(200, 'x')), std::invalid_argument);
  EXPECT_NE(Address::unix_path("/a"), Address::unix_path("/b"));
}

TEST(Resolve, KnowsNumbersAndNames) {
  EXPECT_EQ(resolve("127.0.0.1").front().to_string(), "127.0.0.1:0");
  EXPECT_EQ(resolve("::1").front().to_string(), "[::1]:0");
  EXPECT_FALSE(resolve("localhost").empty());
  EXPECT_THROW((void)resolve("no-such-host.invalid"), std::system_error);
}

// As inet_aton() reads them: a program that looks at a host and knows four decimal numbers only
// would let them pass.
TEST(Resolve, TakesNoOtherWayToWriteANumberForAnAddress) {
  for (const char* host : {"127.1", "127.0.1", "2130706433", "0x7f.0.0.1", "0x7f000001",
                           "0177.0.0.1", "127.0.0.01", "0"}) {
    std::error_code error;
    EXPECT_TRUE(resolve(host, error).empty()) << host;
    EXPECT_EQ(error, std::error_code(EAI_NONAME, resolver_errors())) << host << error.message();
  }
}

TEST(Files, AreReadAndReplaced) {
  std::string path = testing::TempDir() + "magpie-file-" + std::to_string(getpid());
  run([&] {
    EXPECT_THROW((void)read_file(path), std::system_error);
    write_file(path, "first");
    EXPECT_EQ(read_file(path), "first");
    ASSERT_EQ(chmod(path.c_str(), 0640), 0);
    std::string large(1'000'000, 'x');
    write_file(path, large);
    EXPECT_EQ(read_file(path), large);
    struct stat status;
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0640u);
    EXPECT_FALSE(read_file("/proc/self/status").empty());  // says that it has no size
    EXPECT_THROW(write_file("/no/such/folder/file", "x"), std::system_error);
  });
  unlink(path.c_str());
}

TEST(Files, AFullDiskLeavesTheOldContents) {
  run([] {
    try {
      write_file("/dev/full/x", "x");
      ADD_FAILURE();
    } catch (const std::system_error& error) {
      EXPECT_NE(std::string(error.what()).find("/dev/full/x"), std::string::npos);
    }
  });
}

// Wherever it is made: nothing of what lay there before becomes part of it.
TEST(Address, APathEndsWhereItsTextEnds) {
  alignas(Address) static char memory[sizeof(Address)];
  for (std::size_t size = 1; size <= 107; ++size) {
    const std::string path(size, '/');
    for (char& byte : memory) *const_cast<volatile char*>(&byte) = 'x';
    auto* address = new (memory) Address(Address::unix_path(path));
    EXPECT_EQ(address->to_string(), path);
  }
}

}  // namespace
}  // namespace magpie::net
