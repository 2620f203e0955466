// unix_test.cc: whose socket file is whose.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "support/net_test.h"

namespace magpie::net {
namespace {

// A path in a directory of its own.
struct SocketPath {
  SocketPath() {
    EXPECT_NE(mkdtemp(directory.data()), nullptr);
    path = directory + "/socket";
  }
  ~SocketPath() {
    unlink(path.c_str());
    rmdir(directory.c_str());
  }
  bool is_there() const { return access(path.c_str(), F_OK) == 0; }

  std::string directory = "/tmp/magpie_unix_XXXXXX", path;
};

RT_TEST(UnixListener, ABusyOneIsNotStale) {
  SocketPath at;
  UnixListener first = UnixListener::bind(at.path, {.backlog = 1});
  std::vector<UnixConn> in_line;
  std::error_code error;
  for (;;) {
    UnixConn conn = UnixConn::connect(at.path, error);
    if (error) break;
    in_line.push_back(std::move(conn));
  }
  (void)UnixListener::bind(at.path, {.replace_stale = true}, error);
  EXPECT_EQ(error, std::errc::address_in_use);
  EXPECT_TRUE(first.accept().is_open());
  (void)UnixConn::connect(at.path, error);
  EXPECT_FALSE(error) << error.message();
}

RT_TEST(UnixListener, AFileThatIsNoSocketIsNotStale) {
  SocketPath at;
  close(open(at.path.c_str(), O_CREAT | O_WRONLY, 0600));
  std::error_code error;
  (void)UnixListener::bind(at.path, {.replace_stale = true}, error);
  EXPECT_EQ(error, std::errc::address_in_use);
  EXPECT_TRUE(at.is_there());
}

RT_TEST(UnixListener, AStaleOneIsReplaced) {
  SocketPath at;
  std::string kept = at.directory + "/kept";
  {
    UnixListener killed = UnixListener::bind(at.path);
    ASSERT_EQ(rename(at.path.c_str(), kept.c_str()), 0);  // so that it is not removed
  }
  ASSERT_EQ(rename(kept.c_str(), at.path.c_str()), 0);
  UnixListener second = UnixListener::bind(at.path, {.replace_stale = true});
  EXPECT_TRUE(UnixConn::connect(at.path).is_open());
}

RT_TEST(UnixListener, RemovesItsOwnFileAndNotItsSuccessors) {
  SocketPath at;
  std::string aside = at.directory + "/aside";
  UnixListener first = UnixListener::bind(at.path);
  ASSERT_EQ(rename(at.path.c_str(), aside.c_str()), 0);  // its number stays in use
  UnixListener second = UnixListener::bind(at.path);
  first.close();
  EXPECT_TRUE(at.is_there());
  EXPECT_TRUE(UnixConn::connect(at.path).is_open());
  second.close();
  EXPECT_FALSE(at.is_there());
  unlink(aside.c_str());
}

// Whoever sees the file gone may bind: so it goes before the socket does, and one that was moved
// removes it too.
RT_TEST(UnixListener, RemovesItsFileAfterAMove) {
  SocketPath at;
  UnixListener first = UnixListener::bind(at.path), second;
  ASSERT_EQ(chmod(at.path.c_str(), 0600), 0);
  second = std::move(first);
  EXPECT_TRUE(at.is_there());
  second.close();
  EXPECT_FALSE(at.is_there());
}

}  // namespace
}  // namespace magpie::net
