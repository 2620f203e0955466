// lines.cc: numbers lines, like "cat -n", while other goroutines go on.
//
// "lines -" reads its standard input, be it a terminal, a pipe or a file: lines - < README.md
// Without an argument it reads what another goroutine writes into a pipe.
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <cstdio>
#include <string>
#include <system_error>

using namespace magpie;

int number_lines(net::Stream& from, net::Stream& to) {
  net::BufferedReader in(from);
  net::BufferedWriter out(to);
  int number = 0;
  for (std::string_view line : in.lines(1 << 20)) {
    out.write(std::to_string(++number) + '\t');
    out.write(line);
    out.write("\n");
    if (in.buffered().empty()) out.flush();  // before it waits for more
  }
  out.flush();  // the destructor could not tell
  return number;
}

int main(int argc, char**) {
  return run([&] {
    try {
      if (argc > 1) {
        number_lines(net::standard_input(), net::standard_output());
        return 0;
      }
      net::Pipe pipe = net::pipe();
      go([writer = std::move(pipe.writer)]() mutable { writer.write("one\ntwo\nthree"); });
      return number_lines(pipe.reader, net::standard_output()) == 3 ? 0 : 1;
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::broken_pipe) return 0;  // | head
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
  });
}
