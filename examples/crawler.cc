// crawler.cc: follows the links of a site, so many pages at a time, each page once.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <cstdio>
#include <set>
#include <string>

using namespace magpie;
using namespace std::chrono_literals;

constexpr int kPages = 200, kAtOnce = 8;

class Crawler {
 public:
  explicit Crawler(std::string root) : root_(std::move(root)) {}

  // Blocks until every page that can be reached has been seen.
  std::set<std::string> crawl(const std::string& first) {
    visit_later(first);
    visits_.wait();
    return seen_;
  }

 private:
  // A goroutine per page, as many as there are; the semaphore lets some of them ask at a time.
  void visit_later(const std::string& path) {
    if (std::lock_guard hold(mutex_); !seen_.insert(path).second) return;
    visits_.go([this, path] { visit(path); });
  }

  void visit(const std::string& path) {
    slots_.acquire();
    const std::string body = client_.get(root_ + path).body;
    slots_.release();
    static constexpr std::string_view kLink = "href=\"";
    for (std::size_t at = 0; (at = body.find(kLink, at)) != std::string::npos;) {
      at += kLink.size();
      visit_later(body.substr(at, body.find('"', at) - at));
    }
  }

  const std::string root_;
  http::Client client_;
  Semaphore slots_{kAtOnce};
  WaitGroup visits_;
  Mutex mutex_;
  std::set<std::string> seen_;  // guarded by mutex_
};

int main() {
  return run([] {
    // A site where page n links to 2n, 2n + 1 and back to the first.
    std::atomic<int> asked{0}, now{0}, most{0};
    http::Server server;
    server.handle("GET /page/{n}", [&](http::Request& req, http::Response& res) {
      ++asked;
      int inside = ++now;
      for (int before = most; before < inside && !most.compare_exchange_weak(before, inside);)
        continue;
      sleep_for(1ms);
      int n = std::stoi(req.param("n"));
      for (int link : {2 * n, 2 * n + 1, 1}) {
        if (link <= kPages) res.write("<a href=\"/page/" + std::to_string(link) + "\">next</a>\n");
      }
      --now;
    });
    server.listen("127.0.0.1:0");
    JoinHandle<void> serving = spawn([&] { server.serve(); });

    Crawler crawler("http://" + server.local_address().to_string());
    std::size_t pages = crawler.crawl("/page/1").size();
    server.shutdown(1s);
    serving.join();

    std::printf("%zu pages, asked for %d times, at most %d at a time\n", pages, +asked, +most);
    return pages == kPages && asked == kPages && most <= kAtOnce ? 0 : 1;
  });
}
