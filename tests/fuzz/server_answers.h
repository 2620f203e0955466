// server_answers.h: whether what a client heard are the answers to what the server's handlers have
// seen.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/server_routes.h"
#include "http/parser.h"

namespace magpie::fuzz {

using http::Parser;

struct Answer {
  int status = 0;
  bool keep_alive = false;
  bool complete = false;
  std::string body;
};

// Takes a response off the text, interim ones before it included.
inline Answer take_answer(std::string_view& text, bool to_head) {
  Parser parser;
  bool continued = false;
  for (;;) {
    parser.begin(to_head ? Parser::Kind::response_to_head : Parser::Kind::response,
                 {.bytes = 100'000, .fields = 100});
    Parser::Progress progress = parser.parse_head(text);
    if (progress == Parser::Progress::refused) fail("an answer that is no HTTP");
    if (progress == Parser::Progress::need_more) {
      text = {};
      return {};
    }
    text.remove_prefix(parser.head_bytes());
    if (parser.head().status >= 200) break;
    if (parser.head().status != 100 || continued) fail("an interim response too many");
    continued = true;
  }
  const http::Head& head = parser.head();
  Answer answer{head.status, head.keep_alive, true, {}};
  if (!head.has_body) return answer;
  if (!head.chunked) {
    if (!head.content_length && head.keep_alive) fail("an answer without a length or an end");
    const std::uint64_t size = head.content_length.value_or(text.size());
    answer.body = text.substr(0, static_cast<std::size_t>(size));
    answer.complete = answer.body.size() == size;
    text.remove_prefix(answer.body.size());
    return answer;
  }
  std::string part(5000, '\0');
  for (;;) {
    Parser::Decoded decoded = parser.decode(text, part);
    answer.body.append(part, 0, decoded.given);
    text.remove_prefix(decoded.taken);
    if (decoded.progress == Parser::Progress::refused) fail("chunks that are none");
    if (decoded.progress == Parser::Progress::complete) return answer;
    if (decoded.given == 0) break;
  }
  answer.complete = false;
  text = {};
  return answer;
}

// Of all that was heard, which is printed if it is wrong. A patient server's answers are its
// handlers'; else the time-outs have a say.
inline void check(std::string_view heard, bool patient) {
  std::size_t i = 0;
  for (bool more = true; !heard.empty(); ++i) {
    if (!more) fail("something follows the end of the connection");
    const Seen* request = i < seen.size() ? &seen[i] : nullptr;
    Answer answer = take_answer(heard, request != nullptr && request->method == "HEAD");
    more = answer.keep_alive;
    if (request == nullptr) {
      // To HEAD it has no body.
      if (i > seen.size() || answer.status < 400 || answer.keep_alive)
        fail("an answer to nobody: " + std::to_string(answer.status));
      continue;
    }
    if (!answer.complete && (!(request->may_be_cut || !patient) || !heard.empty()))
      fail("half an answer to " + request->target);
    if (!patient) continue;
    if (answer.complete && answer.status != request->status)
      fail(std::to_string(answer.status) + " instead of " + std::to_string(request->status) +
           " to " + request->target);
    if (answer.complete && request->echoes && answer.status == 200 && request->method != "HEAD" &&
        answer.body != request->body)
      fail("another body than was echoed");
  }
  if (patient && i < seen.size()) fail("no answer to " + seen[i].target);
}

// Whether the server's 100 Continue may depend on what has arrived, and with it whether the
// connection goes on.
inline bool has_expectation(std::string_view bytes) {
  std::string lower(bytes);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("expect") != std::string::npos;
}

}  // namespace magpie::fuzz
