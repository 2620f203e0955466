// file_test.cc: what write_file() does to files that are there already.

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "support/net_test.h"

namespace magpie::net {
namespace {

namespace fs = std::filesystem;

struct Directory {
  Directory() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~Directory() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return path + '/' + name; }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(path), {}); }

  std::string path = "/tmp/magpie_file_XXXXXX";
};

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

// A file that can be read by others and has something in it.
bool shows_contents(const Directory& directory) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.path, ignored)) {
    struct stat status {};
    if (stat(entry.path().c_str(), &status) == 0 && status.st_size > 0 &&
        (status.st_mode & 077) != 0)
      return true;
  }
  return false;
}

RT_TEST(WriteFile, ShowsPrivateContentsToNobody) {
  Directory directory;
  std::string key = directory / "key";
  close(open(key.c_str(), O_CREAT | O_WRONLY, 0600));
  std::atomic<bool> stop{false}, seen{false}, looked{false};
  std::thread others([&] {
    while (!stop) {
      if (shows_contents(directory)) seen = true;
      looked = true;
    }
  });
  EXPECT_TRUE(support::eventually([&] { return looked.load(); }));
  std::string secret(std::size_t{4} << 20, 'k');
  for (int i = 0; i < 5; ++i) write_file(key, secret);
  stop = true;
  blocking([&] { others.join(); });
  EXPECT_FALSE(seen);
  EXPECT_EQ(mode_of(key), 0600u);
  EXPECT_EQ(read_file(key), secret);
  EXPECT_EQ(directory.files(), 1);
}

RT_TEST(WriteFile, KeepsTheModeAndGivesANewFileWhatTheSystemGives) {
  Directory directory;
  std::string old = directory / "old", made = directory / "made", plain = directory / "plain";
  close(open(old.c_str(), O_CREAT | O_WRONLY, 0600));
  ASSERT_EQ(chmod(old.c_str(), 0751), 0);
  write_file(old, "x");
  EXPECT_EQ(mode_of(old), 0751u);
  write_file(made, "x");
  close(open(plain.c_str(), O_CREAT | O_WRONLY, 0666));
  EXPECT_EQ(mode_of(made), mode_of(plain));
}

RT_TEST(WriteFile, FollowsLinksAlsoToAFileThatIsNotThereYet) {
  Directory directory;
  write_file(directory / "target", "old");
  fs::create_symlink("target", directory / "link");
  fs::create_symlink("link", directory / "chain");
  write_file(directory / "chain", "new");
  EXPECT_TRUE(fs::is_symlink(directory / "chain"));
  EXPECT_TRUE(fs::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "target"), "new");
  fs::create_symlink(directory / "later", directory / "dangling");
  write_file(directory / "dangling", "made");
  EXPECT_TRUE(fs::is_symlink(directory / "dangling"));
  EXPECT_EQ(read_file(directory / "later"), "made");
  fs::create_symlink("loop", directory / "loop");
  std::error_code error;
  write_file(directory / "loop", "x", error);
  EXPECT_EQ(error, std::errc::too_many_symbolic_link_levels);
}

RT_TEST(WriteFile, LeavesWhatIsNoFileAsItIs) {
  Directory directory;
  std::string fifo = directory / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::error_code error;
  write_file(fifo, "x", error);
  EXPECT_EQ(error, std::errc::operation_not_supported);
  EXPECT_TRUE(fs::is_fifo(fifo));
  write_file(directory.path, "x", error);
  EXPECT_EQ(error, std::errc::is_a_directory);
  write_file("/dev/null", "x", error);
  EXPECT_FALSE(error) << error.message();
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(directory.files(), 1);
}

RT_TEST(WriteFile, TakesTheLongestName) {
  Directory directory;
  std::string name = directory / std::string(255, 'a');
  write_file(name, "x");
  EXPECT_EQ(read_file(name), "x");
}

RT_TEST(Files, AreNotNamedByWhatIsBeforeAZeroByte) {
  Directory directory;
  write_file(directory / "secret", "hidden");
  const std::string name = directory / std::string("secret\0.html", 12);
  std::error_code error;
  EXPECT_EQ(read_file(name, error), "");
  EXPECT_EQ(error, std::errc::invalid_argument);
  write_file(name, "overwritten", error);
  EXPECT_EQ(error, std::errc::invalid_argument);
  EXPECT_EQ(read_file(directory / "secret"), "hidden");
}

}  // namespace
}  // namespace magpie::net
