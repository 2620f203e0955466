// chat_server.cc: everybody hears what anybody says: a server, and fifty guests who talk at once.
//
// chat_room.h has what makes it a chat: a goroutine that owns the list of members.
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <set>
#include <string>

#include "chat_room.h"

using namespace magpie;

// A guest speaks, and listens until it has heard everybody.
bool visit(const std::string& address, int number, std::size_t guests, WaitGroup& all_are_there) {
  net::TcpConn conn = net::TcpConn::connect(address);
  net::BufferedReader reader(conn);
  if (reader.read_line() != "welcome") return false;
  all_are_there.done();
  all_are_there.wait();
  conn.write("I am guest " + std::to_string(number) + "\n");
  std::set<std::string> heard;
  while (heard.size() < guests) {
    std::optional<std::string> line = reader.read_line();
    if (!line) return false;
    heard.insert(*line);
  }
  return true;
}

int main() {
  return run([] {
    constexpr int kGuests = 50;
    auto listener = net::TcpListener::bind("127.0.0.1:0");
    Chan<chat::Event> events(100);
    WaitGroup room, members, guests, all_are_there;
    room.go([&] { chat::run_room(events); });
    members.go([&] {
      std::error_code closed;
      for (int number = 0;; ++number) {
        net::TcpConn conn = listener.accept(closed);
        if (closed) return;
        members.go([&, number, conn = std::move(conn)]() mutable {
          chat::serve(std::move(conn), number, events);
        });
      }
    });
    std::atomic<int> heard_all = 0;
    all_are_there.add(kGuests);
    for (int i = 0; i < kGuests; ++i)
      guests.go([&, i, address = listener.local_address().to_string()] {
        heard_all += visit(address, i, kGuests, all_are_there);
      });
    guests.wait();
    listener.close();
    members.wait();
    events.close();
    room.wait();
    std::printf("%d of %d guests heard everybody\n", heard_all.load(), kGuests);
    return heard_all == kGuests ? 0 : 1;
  });
}
