// stream.cc: the calls of streams, with exceptions, error codes and contexts.
#include <magpie/net/stream.h>

#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <magpie/context.h>

#include "net/errors.h"

namespace magpie::net {

namespace {

class StreamErrors final : public std::error_category {
 public:
  const char* name() const noexcept override { return "stream"; }
  std::string message(int code) const override {
    return code == static_cast<int>(StreamErrc::end_of_stream) ? "the stream ended too early"
                                                               : "unknown error of a stream";
  }
};

}  // namespace

const std::error_category& stream_errors() noexcept {
  static const StreamErrors category;
  return category;
}

EndOfStream::EndOfStream(std::size_t wanted, std::size_t got)
    : std::runtime_error("magpie: the stream ended after " + std::to_string(got) + " of " +
                         std::to_string(wanted) + " bytes") {}

// ---- streams that know nothing of contexts

namespace {

// While it lives the end of the context ends the stream's calls.
class EndsWithContext {
 public:
  EndsWithContext(Stream& stream, const Context* context) {
    if (context != nullptr) callback_.emplace(context->stop_token(), MoveDeadlines{&stream});
  }

 private:
  struct MoveDeadlines {
    Stream* stream;
    void operator()() const noexcept { stream->set_deadline(Stream::TimePoint()); }
  };
  std::optional<std::stop_callback<MoveDeadlines>> callback_;
};

template <class F>
std::error_code error_within(Stream& stream, const Context* context, F call) {
  if (context != nullptr && context->cancelled()) return context->err();
  try {
    EndsWithContext ends(stream, context);
    call();
    return {};
  } catch (const std::system_error& error) {
    return context != nullptr && context->cancelled() ? context->err() : error.code();
  }
}

}  // namespace

Stream::Result Stream::read_result(std::span<std::byte> into, const Context* context) {
  Result result;
  result.error = error_within(*this, context, [&] { result.bytes = read(into); });
  return result;
}

// How much was written before an error such a stream does not say.
Stream::Result Stream::write_result(Parts parts, const Context* context) {
  Result result;
  result.error = error_within(*this, context, [&] { write_parts(parts); });
  if (!result.error) {
    for (Bytes part : parts) result.bytes += part.size();
  }
  return result;
}

std::error_code Stream::shutdown_write_result() {
  return error_within(*this, nullptr, [&] { shutdown_write(); });
}

std::error_code Stream::wait_readable_result(const Context* context) {
  return error_within(*this, context, [&] { wait_readable(); });
}

// ---- reading

void Stream::read_exact(std::span<std::byte> into) {
  std::size_t wanted = into.size();
  while (!into.empty()) {
    std::size_t count = read(into);
    if (count == 0) throw EndOfStream(wanted, wanted - into.size());
    into = into.subspan(count);
  }
}

Stream::Result Stream::read_all_result(std::span<std::byte> into, const Context* context) {
  Result all;
  while (all.bytes < into.size()) {
    Result result = read_result(into.subspan(all.bytes), context);
    all.bytes += result.bytes;
    all.error = result.error;
    if (all.error) break;
    if (result.bytes == 0) {
      all.error = StreamErrc::end_of_stream;
      break;
    }
  }
  return all;
}

std::size_t Stream::read(std::span<std::byte> into, std::error_code& error) {
  Result result = read_result(into, nullptr);
  error = result.error;
  return result.bytes;
}
std::size_t Stream::read_exact(std::span<std::byte> into, std::error_code& error) {
  Result result = read_all_result(into, nullptr);
  error = result.error;
  return result.bytes;
}
std::size_t Stream::read(std::span<std::byte> into, const Context& context) {
  Result result = read_result(into, &context);
  throw_if(result.error, "read from");
  return result.bytes;
}
std::size_t Stream::read(std::span<std::byte> into, const Context& context,
                         std::error_code& error) {
  Result result = read_result(into, &context);
  error = result.error;
  return result.bytes;
}
void Stream::read_exact(std::span<std::byte> into, const Context& context) {
  Result result = read_all_result(into, &context);
  if (result.error == StreamErrc::end_of_stream) throw EndOfStream(into.size(), result.bytes);
  throw_if(result.error, "read from");
}
std::size_t Stream::read_exact(std::span<std::byte> into, const Context& context,
                               std::error_code& error) {
  Result result = read_all_result(into, &context);
  error = result.error;
  return result.bytes;
}

// ---- writing

std::size_t Stream::write_parts(Parts parts, std::error_code& error) {
  Result result = write_result(parts, nullptr);
  error = result.error;
  return result.bytes;
}
void Stream::write_parts(Parts parts, const Context& context) {
  throw_if(write_result(parts, &context).error, "write to");
}
std::size_t Stream::write_parts(Parts parts, const Context& context, std::error_code& error) {
  Result result = write_result(parts, &context);
  error = result.error;
  return result.bytes;
}

// ---- the others

void Stream::shutdown_write(std::error_code& error) { error = shutdown_write_result(); }
void Stream::wait_readable(std::error_code& error) { error = wait_readable_result(nullptr); }
void Stream::wait_readable(const Context& context) {
  throw_if(wait_readable_result(&context), "wait for");
}
void Stream::wait_readable(const Context& context, std::error_code& error) {
  error = wait_readable_result(&context);
}

void Stream::throw_if(std::error_code error, const char* what) const {
  if (!error) [[likely]]
    return;
  std::string peer;
  try {
    peer = remote_address().to_string();
  } catch (const std::system_error&) {  // it has none any more
  }
  fail(error, std::string(what) + (peer.empty() ? " a stream" : ' ' + peer));
}

}  // namespace magpie::net
