// chat_room.h: a room in which everybody hears what anybody says; chat_server.cc uses it.
//
// One goroutine owns the list of members; connections talk to it by channels, so there is no lock.
// A member who does not listen is dropped and holds up nobody.
#pragma once

#include <magpie/magpie.h>
#include <magpie/net.h>

#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace chat {

using namespace magpie;

struct Event {  // what a connection tells the room
  enum { came, said, left } what;
  int member;
  Chan<std::string> to_member = Chan<std::string>::nil();  // came
  std::string text = {};                                   // said
};

// Knows who is there. Ends when `events` is closed.
inline void run_room(Chan<Event> events) {
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
inline void serve(net::TcpConn conn, int member, Chan<Event> room) {
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

}  // namespace chat
