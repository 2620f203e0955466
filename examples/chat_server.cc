// chat_server.cc: everybody hears what anybody says. One goroutine owns the list of members;
// connections talk to it by channels, so there is no lock. A member who does not listen is dropped
// and holds up nobody.
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

using namespace magpie;

// What a connection tells the room.
struct Event {
  enum { came, left, said } what;
  int member;
  Chan<std::string> to_member = Chan<std::string>::nil();  // came
  std::string text = {};                                   // said
};

// Knows who is there. Ends when `events` is closed.
void run_room(Chan<Event> events) {
  std::map<int, Chan<std::string>> members;
  auto leave = [&](int member) {
    auto found = members.find(member);
    if (found == members.end()) return;
    found->second.close();
    members.erase(found);
  };
  for (Event& event : events) {
    if (event.what == Event::came) {
      members.emplace(event.member, event.to_member);
      (void)event.to_member.try_send("welcome\n");  // its line is empty
    }
    if (event.what == Event::left) leave(event.member);
    if (event.what != Event::said) continue;
    for (auto at = members.begin(); at != members.end();) {
      auto [member, to_member] = *at++;
      if (!to_member.try_send(std::string(event.text)))
        leave(member);  // its line is full: it does not listen
    }
  }
  for (auto& [member, to_member] : members) to_member.close();
}

// Reads lines and tells the room; beside it a goroutine writes what the room says.
void serve(net::TcpConn conn, int member, Chan<Event> room) {
  Chan<std::string> to_member(100);
  room.send({.what = Event::came, .member = member, .to_member = to_member});
  WaitGroup writer;
  writer.go([&] {
    try {
      for (const std::string& line : to_member) conn.write(line);
    } catch (const std::system_error&) {
    }
    conn.close();  // dropped, or gone: the reader ends too
  });
  try {
    std::string line;
    std::byte buffer[512];
    while (std::size_t count = conn.read(buffer)) {
      for (std::byte byte : std::span(buffer, count)) {
        line += static_cast<char>(byte);
        if (line.back() != '\n') continue;
        room.send({.what = Event::said, .member = member, .text = std::exchange(line, {})});
      }
    }
  } catch (const std::system_error&) {
  }
  room.send({.what = Event::left, .member = member});
  writer.wait();
}

class ChatServer {
 public:
  ChatServer() : listener_(net::TcpListener::bind("127.0.0.1:0")) {
    room_.go([this] { run_room(events_); });
    accepting_.go([this] { accept_all(); });
  }
  std::string address() const { return listener_.local_address().to_string(); }
  void stop() {
    listener_.close();
    accepting_.wait();
    members_.wait();
    events_.close();
    room_.wait();
  }

 private:
  void accept_all() {
    try {
      for (int number = 0;; ++number) {
        members_.go([conn = listener_.accept(), number, events = events_]() mutable {
          serve(std::move(conn), number, events);
        });
      }
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::operation_canceled) throw;
    }
  }

  net::TcpListener listener_;
  Chan<Event> events_{100};
  WaitGroup room_, accepting_, members_;
};

// A guest says something and listens until it has heard from everybody.
bool visit(const std::string& address, int number, int guests, WaitGroup& everybody_is_there) {
  net::TcpConn conn = net::TcpConn::connect(address);
  std::byte welcome[8];
  conn.read_exact(welcome);
  everybody_is_there.done();
  everybody_is_there.wait();
  conn.write("guest " + std::to_string(number) + " says hello\n");
  std::string heard;
  std::byte buffer[512];
  while (std::count(heard.begin(), heard.end(), '\n') < guests) {
    std::size_t count = conn.read(buffer);
    if (count == 0) return false;
    heard.append(reinterpret_cast<char*>(buffer), count);
  }
  for (int i = 0; i < guests; ++i) {
    if (heard.find("guest " + std::to_string(i) + " says hello\n") == heard.npos) return false;
  }
  return true;
}

int main() {
  return run([] {
    constexpr int kGuests = 50;
    ChatServer server;
    WaitGroup everybody_is_there;
    everybody_is_there.add(kGuests);
    std::atomic<int> heard_all = 0;
    WaitGroup guests;
    for (int i = 0; i < kGuests; ++i) {
      guests.go([&, i] { heard_all += visit(server.address(), i, kGuests, everybody_is_there); });
    }
    guests.wait();
    server.stop();
    std::printf("%d of %d guests heard everybody\n", heard_all.load(), kGuests);
    return heard_all == kGuests ? 0 : 1;
  });
}
