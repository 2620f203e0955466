// curl_easy.cc: two thousand goroutines fetch pages by libcurl's easy interface, which blocks.
//
// blocking() around curl_easy_perform lets other goroutines run meanwhile. A thread is busy for
// each request under way, so a Pool limits them, and keeps handles with their open connections.
#include <curl/curl.h>
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

using namespace magpie;

namespace {

struct Cleanup {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, Cleanup>;

std::size_t append(char* data, std::size_t size, std::size_t count, void* body) {
  static_cast<std::string*>(body)->append(data, size * count);
  return size * count;
}

std::string fetch(CURL* handle, const std::string& url) {
  std::string body;
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);  // signals and many threads do not go together
  CURLcode code = blocking([&] { return curl_easy_perform(handle); });
  if (code != CURLE_OK) throw std::runtime_error(curl_easy_strerror(code));
  return body;
}

}  // namespace

int main() {
  curl_global_init(CURL_GLOBAL_DEFAULT);  // before goroutines begin: it is not safe among threads
  return run([] {
    constexpr int kGoroutines = 2000, kAtATime = 20;
    http::Server server;
    server.handle("GET /square/{n}", [](http::Request& req, http::Response& res) {
      const long n = std::stol(req.param("n"));
      res.send(std::to_string(n * n));
    });
    server.listen("127.0.0.1:0");
    JoinHandle<void> serving = spawn([&] { server.serve(); });
    const std::string url = "http://" + server.local_address().to_string() + "/square/";

    std::atomic<long> sum = 0;
    {
      Pool<Handle> pool(kAtATime, [] { return Handle(curl_easy_init()); });
      TaskGroup fetching;
      for (int i = 0; i < kGoroutines; ++i) {
        fetching.go([&, i] {
          Pool<Handle>::Lease handle = pool.take();
          sum += std::stol(fetch(handle->get(), url + std::to_string(i)));
        });
      }
      fetching.wait();  // throws what the first of them threw
    }
    server.shutdown(std::chrono::seconds(10));
    serving.join();
    constexpr long n = kGoroutines;
    std::printf("%d pages by libcurl, %d threads\n", kGoroutines, num_threads());
    return sum == (n - 1) * n * (2 * n - 1) / 6 ? 0 : 1;
  });
}
