// The same with a heap that cannot be used: the stack is printed all the same.
// expect: ^magpie: goroutine [0-9]+ \(doomed\) ends the program by SIGSEGV, at address 0x10$
// expect: ^    at .
// exit: SIGSEGV
#include <magpie/magpie.h>

#include <cstdlib>
#include <cstring>

int main() {
  magpie::run([] {
    magpie::WaitGroup never;
    never.add(1);
    magpie::go(magpie::GoOptions{.name = "doomed"}, [] {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
      // The sizes of the blocks behind, which the allocator trusts.
      char* block = static_cast<char*>(std::malloc(24));
      char* volatile end = block;
      std::memset(end + 24, 0xee, 4096);
#endif
      *reinterpret_cast<volatile int*>(0x10) = 1;
    });
    never.wait();
  });
}
