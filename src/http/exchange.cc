#include "http/exchange.h"

#include <sys/mman.h>

#include <new>

namespace magpie::http {

Exchange::Exchange(Connection& connection)
    : connection_(&connection), in(connection, input_), out(connection) {}

void* Exchange::operator new(std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

void Exchange::operator delete(void* memory, std::size_t size) noexcept { ::munmap(memory, size); }

void Exchange::detach() {
  in.forget();
  out.forget();
}

}  // namespace magpie::http
