// curl_driver.h: libcurl's multi interface on Magpie's poller, for curl_multi.cc.
#pragma once

#include <curl/curl.h>
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <map>
#include <string>

struct CurlRequest {
  std::string url, body = {};
  magpie::Chan<CURLcode> done{1};
};

struct CurlEvent {
  int socket, mask;
};

// Waits for a socket of libcurl's, once, and tells the driver. Its end waits for its goroutines:
// libcurl may close the socket then.
class CurlWatch {
 public:
  CurlWatch(magpie::Chan<CurlEvent> events, int socket, int what) {
    auto watch = [this, events, socket](int mask, auto wait) {
      waiting_.go([context = context_, events, socket, mask, wait] {
        std::error_code error;
        wait(socket, context, error);
        if (!error) events.send(context, {socket, mask}, error);
      });
    };
    using magpie::Context;
    if ((what & CURL_POLL_IN) != 0)
      watch(CURL_CSELECT_IN, [](int fd, const Context& context, std::error_code& error) {
        magpie::net::wait_readable(fd, context, error);
      });
    if ((what & CURL_POLL_OUT) != 0)
      watch(CURL_CSELECT_OUT, [](int fd, const Context& context, std::error_code& error) {
        magpie::net::wait_writable(fd, context, error);
      });
  }
  ~CurlWatch() {
    context_.cancel();
    waiting_.wait();
  }

 private:
  magpie::Context context_ = magpie::Context::background().with_cancel();
  magpie::WaitGroup waiting_;
};

class CurlDriver {
 public:
  CurlDriver() {
    curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, 50L);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlDriver::on_socket);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlDriver::on_timer);
  }
  ~CurlDriver() { curl_multi_cleanup(multi_); }
  CurlDriver(const CurlDriver&) = delete;
  CurlDriver& operator=(const CurlDriver&) = delete;

  // Any number of goroutines may call it at once. Blocks until the reply is there.
  CURLcode fetch(CurlRequest& request) {
    requests_.send(&request);
    return *request.done.recv();
  }
  void stop() { requests_.close(); }

  // Drives the requests until stop().
  void run() {
    using namespace magpie;
    for (bool open = true; open;) {
      int running = 0;
      select(on_recv(requests_,
                     [&](std::optional<CurlRequest*> request) {
                       request ? add(**request) : void(open = false);
                     }),
             on_recv(events_,
                     [&](std::optional<CurlEvent> event) {
                       curl_multi_socket_action(multi_, event->socket, event->mask, &running);
                       watch_again(event->socket);
                     }),
             on_timeout(std::exchange(wait_, kForever), [&] {
               curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
             }));
      report();
    }
  }

 private:
  static constexpr std::chrono::milliseconds kForever = std::chrono::hours(24);

  static std::size_t on_data(char* data, std::size_t size, std::size_t count, void* request) {
    static_cast<CurlRequest*>(request)->body.append(data, size * count);
    return size * count;
  }
  static int on_socket(CURL*, curl_socket_t socket, int what, void* driver, void*) {
    auto& self = *static_cast<CurlDriver*>(driver);
    self.watches_.erase(socket);
    self.wanted_.erase(socket);
    if (what == CURL_POLL_REMOVE) return 0;
    self.wanted_[socket] = what;
    self.watches_.try_emplace(socket, self.events_, socket, what);
    return 0;
  }
  static int on_timer(CURLM*, long milliseconds, void* driver) {
    static_cast<CurlDriver*>(driver)->wait_ =
        milliseconds < 0 ? kForever : std::chrono::milliseconds(milliseconds);
    return 0;
  }

  void add(CurlRequest& request) {
    CURL* easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &CurlDriver::on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &request);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &request);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_multi_add_handle(multi_, easy);  // calls on_timer
  }
  void watch_again(int socket) {
    auto at = wanted_.find(socket);
    if (at == wanted_.end()) return;
    watches_.erase(socket);
    watches_.try_emplace(socket, events_, socket, at->second);
  }
  void report() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* easy = message->easy_handle;
      const CURLcode code = message->data.result;
      CurlRequest* request = nullptr;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &request);
      curl_multi_remove_handle(multi_, easy);
      curl_easy_cleanup(easy);
      request->done.send(code);
    }
  }

  CURLM* const multi_ = curl_multi_init();
  magpie::Chan<CurlRequest*> requests_;
  magpie::Chan<CurlEvent> events_;
  // of the driver's goroutine
  std::map<int, int> wanted_;  // what to watch a socket for
  std::map<int, CurlWatch> watches_;
  std::chrono::milliseconds wait_ = kForever;
};
