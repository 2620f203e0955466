// curl_multi.cc: two thousand requests of libcurl, and no thread waits for any of them.
//
// The driver is the only goroutine that calls libcurl's multi interface. libcurl tells it which
// sockets to watch; a goroutine for each waits on Magpie's poller and reports to the driver.
#include <curl/curl.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "curl_driver.h"

using namespace magpie;

int main() {
  curl_global_init(CURL_GLOBAL_DEFAULT);  // before goroutines begin: it is not safe among threads
  return run([] {
    constexpr int kGoroutines = 2000;
    http::Server server;
    server.handle("GET /square/{n}", [](http::Request& req, http::Response& res) {
      const long n = std::stol(req.param("n"));
      res.send(std::to_string(n * n));
    });
    server.listen("127.0.0.1:0");
    JoinHandle<void> serving = spawn([&] { server.serve(); });
    const std::string url = "http://" + server.local_address().to_string() + "/square/";

    std::atomic<long> sum = 0;
    std::atomic<int> failed = 0;
    CurlDriver driver;
    JoinHandle<void> driving = spawn([&] { driver.run(); });
    WaitGroup all;
    for (int i = 0; i < kGoroutines; ++i) {
      all.go([&, i] {
        CurlRequest request{.url = url + std::to_string(i)};
        if (driver.fetch(request) != CURLE_OK) {
          ++failed;
        } else {
          sum += std::stol(request.body);
        }
      });
    }
    all.wait();
    driver.stop();
    driving.join();
    server.shutdown(std::chrono::seconds(10));
    serving.join();
    constexpr long n = kGoroutines;
    std::printf("%d pages by libcurl, %d threads, %d failed\n", kGoroutines, num_threads(),
                failed.load());
    return failed == 0 && sum == (n - 1) * n * (2 * n - 1) / 6 ? 0 : 1;
  });
}
