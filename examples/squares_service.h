// squares_service.h: a gRPC service whose handlers are goroutines, for grpc.cc.
//
// gRPC calls Squares::Square on a thread of its own. That starts a goroutine and returns; the
// goroutine ends the call.
#pragma once

#include <grpcpp/grpcpp.h>
#include <magpie/magpie.h>

#include <atomic>
#include <cstdint>

#include "squares.grpc.pb.h"

using grpc::Status;
using magpie::Context;
using magpie::go;
using magpie::WaitGroup;
using squares::Number;

constexpr int kCalls = 2000;
inline WaitGroup still_to_come;  // of kCalls calls
inline std::atomic<int> abandoned{0};

// What the service does: plain code that may wait.
inline Status square(const Context& context, std::int64_t value, Number& answer) {
  if (value < 0) {  // one that takes for ever
    (void)context.done().recv();
    ++abandoned;
    return Status::CANCELLED;
  }
  if (value < kCalls) {
    still_to_come.done();
    still_to_come.wait();
  }
  answer.set_value(value * value);
  return Status::OK;
}

class Call final : public grpc::ServerUnaryReactor {
 public:
  const Context context = Context::background().with_cancel();

 private:
  void OnCancel() override { context.cancel(); }  // the client has gone, or its deadline is over
  void OnDone() override { delete this; }         // after Finish() and OnCancel()
};

class Squares final : public squares::Squares::CallbackService {
  grpc::ServerUnaryReactor* Square(grpc::CallbackServerContext*, const Number* question,
                                   Number* answer) override {
    Call* call = new Call;
    go([=] { call->Finish(square(call->context, question->value(), *answer)); });
    return call;
  }
};
