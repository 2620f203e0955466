// lines.cc: numbers the lines of its standard input, like "cat -n", while other goroutines go on.
//
// From a terminal, a pipe or a file: lines < README.md
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <cstdio>
#include <string>
#include <system_error>

using namespace magpie;

int main() {
  return run([] {
    net::BufferedReader in(net::standard_input());
    net::BufferedWriter out(net::standard_output());
    int number = 0;
    try {
      for (std::string_view line : in.lines(1 << 20)) {
        out.write(std::to_string(++number) + '\t');
        out.write(line);
        out.write("\n");
        if (in.buffered().empty()) out.flush();  // before it waits for more
      }
      out.flush();  // the destructor could not tell
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::broken_pipe) return 0;  // | head
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
    return 0;
  });
}
