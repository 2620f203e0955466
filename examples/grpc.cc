// grpc.cc: a gRPC server whose handlers are goroutines, and clients that are goroutines.
//
// Two thousand calls wait for each other here and hold no thread, and neither do their clients, by
// gRPC's callbacks. The blocking form holds a thread for each call. The server: squares_service.h.
#include <grpcpp/grpcpp.h>
#include <magpie/magpie.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "squares_service.h"

using namespace magpie;
using namespace std::chrono_literals;

namespace {

std::atomic<int> right{0};

// Waits in the goroutine, and holds no thread. When the context ends, so does the call.
Status ask(const Context& context, squares::Squares::Stub& stub, std::int64_t value) {
  grpc::ClientContext call;
  Number question, answer;
  question.set_value(value);
  Chan<Status> ended(1);
  stub.async()->Square(&call, &question, &answer,
                       [ended](Status status) { ended.send(std::move(status)); });
  std::error_code over;
  std::optional<Status> status = ended.recv(context, over);
  if (!status) {
    call.TryCancel();
    status = ended.recv();  // until then gRPC writes to `answer`
  }
  if (status->ok() && answer.value() == value * value) ++right;
  return *status;
}

void ask_blocking(squares::Squares::Stub& stub, std::int64_t value) {
  grpc::ClientContext call;
  Number question, answer;
  question.set_value(value);
  Status status = blocking([&] { return stub.Square(&call, question, &answer); });
  if (status.ok() && answer.value() == value * value) ++right;
}

}  // namespace

int main() {
  return run([] {
    Squares service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    squares::Squares::Stub stub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                    grpc::InsecureChannelCredentials()));
    still_to_come.add(kCalls);
    TaskGroup clients;
    for (int i = 0; i < kCalls; ++i)
      clients.go([&, i] { (void)ask(Context::background(), stub, i); });
    clients.wait();
    clients.set_limit(8);  // a thread each
    for (int i = kCalls; i < 2 * kCalls; ++i) clients.go([&, i] { ask_blocking(stub, i); });
    clients.wait();

    const Context soon = Context::background().with_timeout(20ms);
    const bool gave_up = ask(soon, stub, -1).error_code() == grpc::StatusCode::CANCELLED;
    blocking([&] { server->Shutdown(); });  // waits for the calls, so for their goroutines
    std::printf("%d answers are right; the client gave up: %d, its call's goroutine ended: %d\n",
                right.load(), gave_up, abandoned.load());
    return right == 2 * kCalls && gave_up && abandoned == 1 ? 0 : 1;
  });
}
