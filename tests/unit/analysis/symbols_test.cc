#include "analysis/symbols.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace magpie::analysis {
namespace {

// Else the reader of a trace would wait for ever for somebody who writes to the pipe.
TEST(Symbols, APipeThatATraceNamesIsNotOpened) {
  char folder[] = "/tmp/magpie-symbols-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string pipe = std::string(folder) + "/program";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  alarm(60);
  for (const char* build_id : {"", "0123"}) {
    auto symbols = Symbols::make({{0x1000, 0x2000, 0, pipe, build_id}});
    EXPECT_EQ(symbols->text(0x1010), "program+0x10");
  }
  alarm(0);
  unlink(pipe.c_str());
  rmdir(folder);
}

}  // namespace
}  // namespace magpie::analysis
