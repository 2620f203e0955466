// main HOST GUEST: a program that knows nothing of Magpie loads two plugins that use it, while
// other threads run, and unloads them. Twice: the library stays, and its runtime starts again.
#include <dlfcn.h>

#include <cstdio>
#include <thread>

namespace {

void* find(void* plugin, const char* name) {
  void* place = plugin == nullptr ? nullptr : dlsym(plugin, name);
  if (place == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  return place;
}

int use(const char* host_file, const char* guest_file) {
  void* host = dlopen(host_file, RTLD_NOW | RTLD_LOCAL);
  void* host_entry = find(host, "host_entry");
  void* guest = dlopen(guest_file, RTLD_NOW | RTLD_LOCAL);
  void* guest_entry = find(guest, "guest_entry");
  if (host_entry == nullptr || guest_entry == nullptr) return 1;
  const int result = reinterpret_cast<int (*)(void*)>(host_entry)(guest_entry);
  dlclose(guest);
  dlclose(host);
  return result;
}

}  // namespace

int main(int, char** arguments) {
  // Its thread_locals are laid out before there is a Magpie.
  int results[2] = {1, 1};
  std::thread([&] {
    for (int& result : results) result = use(arguments[1], arguments[2]);
  }).join();
  if (results[0] != 0 || results[1] != 0) {
    std::fprintf(stderr, "the plugins do not share one runtime: %d %d\n", results[0], results[1]);
    return 1;
  }
}
