// overloads_test.cc: every call of the network, of processes and of HTTP that may fail has a form
// with a std::error_code&, and every call that may block has one with a Context. The compiler
// checks the list. What the forms do is tested beside the calls themselves.
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <magpie/net/buffered.h>
#include <magpie/net/tls.h>
#include <magpie/process.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace magpie {
namespace {

using Into = std::span<std::byte>;
using Bytes = std::span<const std::byte>;
using Text = std::string_view;

// `call` with these arguments, alone and with an error code behind them.
template <class Call, class... Args>
concept Fails = requires(Call call, std::error_code& error, Args... args) {
  call(static_cast<Args&&>(args)...);
  call(static_cast<Args&&>(args)..., error);
};
// The same with a context too.
template <class Call, class... Args>
concept Blocks = Fails<Call, Args...> && Fails<Call, Args..., const Context&>;

// A member function as a call.
#define MEMBER(Type, name)                                                    \
  decltype([](auto&&... args) -> decltype(std::declval<Type&>().name(         \
                                  std::forward<decltype(args)>(args)...)) {   \
    return std::declval<Type&>().name(std::forward<decltype(args)>(args)...); \
  })
#define FUNCTION(name)                                                                   \
  decltype([](auto&&... args) -> decltype(name(std::forward<decltype(args)>(args)...)) { \
    return name(std::forward<decltype(args)>(args)...);                                  \
  })

template <class Stream>
constexpr bool is_whole_stream() {
  static_assert(Blocks<MEMBER(Stream, read), Into>);
  static_assert(Blocks<MEMBER(Stream, read_exact), Into>);
  static_assert(Blocks<MEMBER(Stream, write), Bytes>);
  static_assert(Blocks<MEMBER(Stream, write), Text>);
  static_assert(Blocks<MEMBER(Stream, write_parts), net::Stream::Parts>);
  static_assert(Blocks<MEMBER(Stream, wait_readable)>);
  static_assert(Fails<MEMBER(Stream, shutdown_write)>);  // deadlines end it
  return true;
}
static_assert(is_whole_stream<net::Stream>());
static_assert(is_whole_stream<net::TcpConn>());
static_assert(is_whole_stream<net::UnixConn>());
static_assert(is_whole_stream<net::TlsConn>());
static_assert(is_whole_stream<net::PipeStream>());

// ---- connections and listeners

using std::chrono::seconds;
using TimePoint = std::chrono::system_clock::time_point;

static_assert(Blocks<FUNCTION(net::resolve), const std::string&>);
static_assert(Fails<FUNCTION(net::resolve), const std::string&, seconds>);
static_assert(Fails<FUNCTION(net::resolve), const std::string&, TimePoint>);

static_assert(Blocks<FUNCTION(net::TcpConn::connect), Text>);
static_assert(Fails<FUNCTION(net::TcpConn::connect), Text, seconds>);
static_assert(Fails<FUNCTION(net::TcpConn::connect), Text, TimePoint>);
static_assert(Fails<FUNCTION(net::TcpConn::adopt), int>);
static_assert(Fails<MEMBER(net::TcpConn, set_keep_alive), seconds>);
static_assert(Fails<MEMBER(net::TcpConn, local_address)>);
static_assert(Fails<MEMBER(net::TcpConn, remote_address)>);
static_assert(Fails<FUNCTION(net::TcpListener::bind), Text>);
static_assert(Blocks<FUNCTION(net::TcpListener::bind), Text, net::BindOptions>);
static_assert(Fails<FUNCTION(net::TcpListener::adopt), int>);
static_assert(Blocks<MEMBER(net::TcpListener, accept)>);
static_assert(Fails<MEMBER(net::TcpListener, local_address)>);

static_assert(Blocks<FUNCTION(net::UnixConn::connect), Text>);
static_assert(Fails<FUNCTION(net::UnixConn::adopt), int>);
static_assert(Fails<FUNCTION(net::UnixListener::bind), Text>);
static_assert(Fails<FUNCTION(net::UnixListener::bind), Text, net::UnixBindOptions>);
static_assert(Fails<FUNCTION(net::UnixListener::adopt), int>);
static_assert(Blocks<MEMBER(net::UnixListener, accept)>);

static_assert(Fails<FUNCTION(net::UdpSocket::bind), Text>);
static_assert(Blocks<FUNCTION(net::UdpSocket::bind), Text, net::BindOptions>);
static_assert(Blocks<FUNCTION(net::UdpSocket::connect), Text>);
static_assert(Fails<FUNCTION(net::UdpSocket::adopt), int>);
static_assert(Blocks<MEMBER(net::UdpSocket, receive), Into>);
static_assert(Blocks<MEMBER(net::UdpSocket, receive_from), Into>);
static_assert(Blocks<MEMBER(net::UdpSocket, send), Bytes>);
static_assert(Blocks<MEMBER(net::UdpSocket, send_to), Bytes, net::Address>);
static_assert(Fails<MEMBER(net::UdpSocket, local_address)>);

using ClientConfig = const net::TlsClientConfig&;
using ServerConfig = const net::TlsServerConfig&;
static_assert(Blocks<FUNCTION(net::TlsConn::connect), Text, ClientConfig>);
static_assert(Fails<FUNCTION(net::TlsConn::connect), Text, ClientConfig, seconds>);
static_assert(Fails<FUNCTION(net::TlsConn::connect), Text, ClientConfig, TimePoint>);
static_assert(
    Fails<FUNCTION(net::TlsConn::client), net::TcpConn&&, const std::string&, ClientConfig>);
static_assert(Fails<FUNCTION(net::TlsConn::server), net::TcpConn&&, ServerConfig>);
static_assert(Blocks<MEMBER(net::TlsConn, handshake)>);
static_assert(Fails<MEMBER(net::TlsConn, local_address)>);
static_assert(Fails<MEMBER(net::TlsConn, remote_address)>);
static_assert(Blocks<FUNCTION(net::TlsListener::bind), Text, ServerConfig>);
static_assert(Blocks<MEMBER(net::TlsListener, accept)>);
static_assert(Fails<MEMBER(net::TlsListener, local_address)>);
static_assert(Fails<MEMBER(const net::TlsServerConfig, reload)>);
static_assert(Fails<FUNCTION(net::TlsConn::connect), Text>);
static_assert(std::is_constructible_v<net::TlsClientConfig, const net::TlsClientConfig::Options&,
                                      std::error_code&>);
static_assert(std::is_constructible_v<net::TlsServerConfig, const net::TlsServerConfig::Options&,
                                      std::error_code&>);

// ---- descriptors, files, pipes, processes

static_assert(Blocks<FUNCTION(net::wait_readable), int>);
static_assert(Fails<FUNCTION(net::wait_readable), int, seconds>);
static_assert(Fails<FUNCTION(net::wait_readable), int, TimePoint>);
static_assert(Blocks<FUNCTION(net::wait_writable), int>);
static_assert(Fails<FUNCTION(net::wait_writable), int, seconds>);
static_assert(Fails<FUNCTION(net::wait_writable), int, TimePoint>);
static_assert(Fails<FUNCTION(net::read_file), const std::string&>);  // a disk cannot be called off
static_assert(Fails<FUNCTION(net::write_file), const std::string&, Text>);
static_assert(Fails<FUNCTION(net::pipe)>);
static_assert(Fails<FUNCTION(net::PipeStream::adopt), int>);

using net::BufferedReader;
static_assert(Blocks<MEMBER(BufferedReader, read), Into>);
static_assert(Blocks<MEMBER(BufferedReader, read_exact), Into>);
static_assert(Blocks<MEMBER(BufferedReader, read_line), std::size_t>);
static_assert(Blocks<MEMBER(BufferedReader, read_until), Text, std::size_t>);
static_assert(Blocks<MEMBER(BufferedReader, read_all), std::size_t>);
static_assert(Blocks<MEMBER(BufferedReader, peek), std::size_t>);
static_assert(requires(BufferedReader reader, const Context& context) {
  reader.lines(10, context);  // an iterator can only throw
});
static_assert(Blocks<MEMBER(net::BufferedWriter, write), Bytes>);
static_assert(Blocks<MEMBER(net::BufferedWriter, write), Text>);
static_assert(Blocks<MEMBER(net::BufferedWriter, flush)>);

static_assert(Fails<FUNCTION(Process::spawn), std::vector<std::string>, ProcessOptions>);
static_assert(Blocks<MEMBER(Process, wait)>);
static_assert(Fails<MEMBER(Process, wait_for), seconds>);
static_assert(Fails<MEMBER(Process, wait_until), TimePoint>);
static_assert(Fails<MEMBER(Process, try_wait)>);
static_assert(Fails<MEMBER(Process, wait_or_kill), const Context&>);
static_assert(Fails<MEMBER(Process, wait_or_kill), const Context&, seconds>);
static_assert(Fails<MEMBER(Process, kill), int>);
static_assert(Blocks<MEMBER(Process, communicate), Text, std::size_t>);

// ---- HTTP: a request brings its context in ClientRequest, a handler has that of its request

using http::Client;
using http::Headers;
static_assert(Fails<MEMBER(Client, get), Text>);
static_assert(Fails<MEMBER(Client, get), Text, Headers>);
static_assert(Fails<MEMBER(Client, post), Text, Text>);
static_assert(Fails<MEMBER(Client, post), Text, Text, Headers>);
static_assert(Fails<MEMBER(Client, request), Text, Text>);
static_assert(Fails<MEMBER(Client, request), Text, Text, Headers>);
static_assert(Fails<MEMBER(Client, request), Text, Text, Headers, Text>);
static_assert(Fails<MEMBER(Client, request), http::ClientRequest>);
static_assert(Fails<MEMBER(Client, open), Text, Text>);
static_assert(Fails<MEMBER(Client, open), Text, Text, Headers>);
static_assert(Fails<MEMBER(Client, open), Text, Text, Headers, Text>);
static_assert(Fails<MEMBER(Client, open), Text, Text, Headers, http::BodySource&>);
static_assert(Fails<MEMBER(Client, open), http::ClientRequest>);
static_assert(Fails<MEMBER(http::ReplyStream, read), Into>);
static_assert(Fails<MEMBER(http::ReplyStream, read), std::span<char>>);
static_assert(Fails<MEMBER(http::ReplyStream, read_all), std::uint64_t>);

static_assert(Fails<MEMBER(http::Server, listen), Text>);
static_assert(Fails<MEMBER(http::Server, listen), Text, ServerConfig>);
static_assert(Fails<MEMBER(http::Server, listen_fd), int>);
static_assert(Fails<MEMBER(http::Request, body)>);
static_assert(Fails<MEMBER(http::Request, read), Into>);
static_assert(Fails<MEMBER(http::Request, read), std::span<char>>);
static_assert(Fails<MEMBER(http::Response, send), Text>);
static_assert(Fails<MEMBER(http::Response, send), Bytes>);
static_assert(Fails<MEMBER(http::Response, write), Text>);
static_assert(Fails<MEMBER(http::Response, write), Bytes>);
static_assert(Fails<MEMBER(http::Response, flush)>);

}  // namespace
}  // namespace magpie
