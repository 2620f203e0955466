// magpie.cppm: the named module magpie. What it exports is what the public headers declare, without
// the insides and without macros: of those, magpie.h has only the numbers of the version.
//
// A program compiles this file itself, with its own flags, as the compiler's module files fit no
// other compiler, and often no other flags:
//
//   clang++-19 -std=c++20 --precompile magpie.cppm -o magpie.pcm
//   clang++-19 -std=c++20 -fmodule-file=magpie=magpie.pcm main.cc magpie.pcm -lmagpie
module;

#include <magpie/debug_server.h>
#include <magpie/http.h>
#include <magpie/magpie.h>
#include <magpie/net.h>
#include <magpie/net/dns.h>
#include <magpie/net/tls.h>
#include <magpie/pool.h>
#include <magpie/process.h>
#include <magpie/profile.h>
#include <magpie/single_flight.h>

export module magpie;

export namespace magpie {
using magpie::AfterFunc;
using magpie::Chan;
using magpie::CircuitBreaker;
using magpie::CircuitOpen;
using magpie::ClosedChannel;
using magpie::CodePlace;
using magpie::CondVar;
using magpie::Context;
using magpie::Bystander;
using magpie::DeadlockPolicy;
using magpie::Defer;
using magpie::ExitStatus;
using magpie::Fold;
using magpie::GoOptions;
using magpie::GoroutineDump;
using magpie::GoroutineInfo;
using magpie::JoinHandle;
using magpie::Local;
using magpie::LogHook;
using magpie::Mutex;
using magpie::Once;
using magpie::Options;
using magpie::Pool;
using magpie::PoolOptions;
using magpie::ProcStats;
using magpie::Process;
using magpie::ProcessOptions;
using magpie::QuitPolicy;
using magpie::RWMutex;
using magpie::RateLimiter;
using magpie::ResultGroup;
using magpie::Selector;
using magpie::Semaphore;
using magpie::Signals;
using magpie::SingleFlight;
using magpie::SlowGoroutine;
using magpie::Stats;
using magpie::Stdio;
using magpie::TaskGroup;
using magpie::ThreadLock;
using magpie::Ticker;
using magpie::TimePoint;
using magpie::Timer;
using magpie::WaitGroup;
using magpie::WorkerPool;
using magpie::after;
using magpie::after_func;
using magpie::blocking;
using magpie::dump;
using magpie::dump_goroutines;
using magpie::go;
using magpie::goroutine_id;
using magpie::moves_plainly;
using magpie::num_cpu;
using magpie::num_goroutines;
using magpie::num_threads;
using magpie::on_deadline;
using magpie::on_done;
using magpie::on_recv;
using magpie::on_send;
using magpie::on_slow;
using magpie::on_timeout;
using magpie::on_uncaught;
using magpie::otherwise;
using magpie::parallel_for;
using magpie::parallel_reduce;
using magpie::procs;
using magpie::run;
using magpie::select;
using magpie::select_next;
using magpie::set_log_hook;
using magpie::set_max_threads;
using magpie::set_procs;
using magpie::signal_channel;
using magpie::sleep_for;
using magpie::sleep_until;
using magpie::spawn;
using magpie::spawn_closing;
using magpie::stats;
using magpie::version;
using magpie::yield;
}  // namespace magpie

export namespace magpie::net {
using magpie::net::Address;
using magpie::net::BindOptions;
using magpie::net::BufferedReader;
using magpie::net::BufferedWriter;
using magpie::net::DnsResolver;
using magpie::net::EndOfStream;
using magpie::net::InheritedSocket;
using magpie::net::Listener;
using magpie::net::Pipe;
using magpie::net::PipeStream;
using magpie::net::Resolver;
using magpie::net::SocketStream;
using magpie::net::Stream;
using magpie::net::StreamErrc;
using magpie::net::TcpConn;
using magpie::net::TcpListener;
using magpie::net::TlsCertificate;
using magpie::net::TlsClientAuth;
using magpie::net::TlsClientConfig;
using magpie::net::TlsConn;
using magpie::net::TlsIdentity;
using magpie::net::TlsListener;
using magpie::net::TlsServerConfig;
using magpie::net::TlsVersion;
using magpie::net::UdpSocket;
using magpie::net::UnixBindOptions;
using magpie::net::UnixConn;
using magpie::net::UnixListener;
using magpie::net::dns_errors;
using magpie::net::inherited_sockets;
using magpie::net::make_error_code;
using magpie::net::pipe;
using magpie::net::read_file;
using magpie::net::resolve;
using magpie::net::resolver_errors;
using magpie::net::set_resolver;
using magpie::net::standard_error;
using magpie::net::standard_input;
using magpie::net::standard_output;
using magpie::net::stream_errors;
using magpie::net::tls_errors;
using magpie::net::wait_readable;
using magpie::net::wait_writable;
using magpie::net::write_file;
}  // namespace magpie::net

export namespace magpie::http {
using magpie::http::AddressLimits;
using magpie::http::BodySource;
using magpie::http::Client;
using magpie::http::ClientOptions;
using magpie::http::ClientRequest;
using magpie::http::Handler;
using magpie::http::Headers;
using magpie::http::Middleware;
using magpie::http::ProtocolError;
using magpie::http::Reply;
using magpie::http::ReplyStream;
using magpie::http::Request;
using magpie::http::Response;
using magpie::http::RouteOptions;
using magpie::http::Server;
using magpie::http::ServerOptions;
using magpie::http::StatusError;
using magpie::http::access_log;
using magpie::http::limit_concurrency;
using magpie::http::limit_per_address;
using magpie::http::reason_of;
using magpie::http::timeout;
}  // namespace magpie::http

export namespace magpie::debug {
using magpie::debug::ServeOptions;
using magpie::debug::Server;
using magpie::debug::handler;
using magpie::debug::serve;
using magpie::debug::serve_trace;
}  // namespace magpie::debug

export namespace magpie::trace {
using magpie::trace::Options;
using magpie::trace::Region;
using magpie::trace::Task;
using magpie::trace::log;
using magpie::trace::snapshot;
using magpie::trace::start;
using magpie::trace::stop;
}  // namespace magpie::trace

export namespace magpie::profile {
using magpie::profile::Options;
using magpie::profile::Waits;
using magpie::profile::pprof;
using magpie::profile::start;
using magpie::profile::stop;
}  // namespace magpie::profile
