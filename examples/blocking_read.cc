// blocking_read.cc: a read that blocks, beside work that computes, on one P.
//
// The reader says blocking() and waits in read(2) for a line. Its P goes on without it: the other
// goroutine computes, and then writes that line. If the read kept the P, nobody would ever write.
#include <magpie/magpie.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

int main() {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) return 1;

  std::string line = magpie::run(magpie::Options{.procs = 1}, [&] {
    magpie::Chan<void> about_to_read(1);
    magpie::JoinHandle<std::string> reader = magpie::spawn([&] {
      std::array<char, 100> buffer;
      about_to_read.send();
      const ssize_t n =
          magpie::blocking([&] { return read(ends[0], buffer.data(), buffer.size()); });
      return std::string(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    });
    about_to_read.recv();
    std::uint64_t sum = 0;
    for (std::uint64_t i = 1; i <= 10'000'000; ++i) sum += i * i % 7;
    const std::string text = "the sum is " + std::to_string(sum);
    if (write(ends[1], text.data(), text.size()) < 0) std::perror("write");
    return reader.join();
  });

  std::printf("the reader got: %s\n", line.c_str());
  close(ends[0]);
  close(ends[1]);
  return line.starts_with("the sum is ") ? 0 : 1;
}
