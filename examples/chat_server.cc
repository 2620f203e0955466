// chat_server.cc: everybody hears what anybody says. One goroutine owns the list of members;
// connections talk to it by channels, so there is no lock. A member who does not listen is dropped
// and holds up nobody.
#include <magpie/magpie.h>
#include <magpie/net.h>

#include <cstdio>
#include <map>
#include <set>

using namespace magpie;

struct Event {  // what a connection tells the room
  enum { came, said, left } what;
  int member;
  Chan<std::string> to_member = Chan<std::string>::nil();  // came
  std::string text = {};                                   // said
};

// Knows who is there. Ends when `events` is closed.
void run_room(Chan<Event> events) {
  std::map<int, Chan<std::string>> members;
  for (Event& event : events) {
    if (event.what == Event::came) members.emplace(event.member, event.to_member);
    if (event.what == Event::left) {
      if (auto member = members.extract(event.member)) member.mapped().close();
    }
    if (event.what != Event::said) continue;
    std::erase_if(members, [&](auto& member) {
      bool listens = member.second.try_send(std::string(event.text));
      if (!listens) member.second.close();  // its buffer is full
      return !listens;
    });
  }
}

// Reads lines and tells the room; beside it a goroutine writes what the room says.
void serve(net::TcpConn conn, int member, Chan<Event> room) {
  Chan<std::string> to_member(100);
  to_member.send("welcome\n");
  room.send({.what = Event::came, .member = member, .to_member = to_member});
  WaitGroup writer;
  writer.go([&] {
    std::error_code gone;
    for (const std::string& line : to_member) conn.write(line, gone);
    conn.close();  // dropped, or gone: the reader ends too
  });
  std::error_code gone;
  net::BufferedReader reader(conn);
  while (std::optional<std::string> line = reader.read_line(reader.kUsualLimit, gone))
    room.send({.what = Event::said, .member = member, .text = *line + "\n"});
  room.send({.what = Event::left, .member = member});
  writer.wait();
}

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
    Chan<Event> events(100);
    WaitGroup room, members, guests, all_are_there;
    room.go([&] { run_room(events); });
    members.go([&] {
      std::error_code closed;
      for (int number = 0;; ++number) {
        net::TcpConn conn = listener.accept(closed);
        if (closed) return;
        members.go([&, number, conn = std::move(conn)]() mutable {
          serve(std::move(conn), number, events);
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
