// cancellable.h: every operation of the core that waits with a Context, in one form, for tests that
// all must pass.
//
// An operation blocks until it is granted. Each grant lets one call through: that call, or a later
// one.
#pragma once

#include <gtest/gtest.h>
#include <magpie/magpie.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace magpie::support {

inline const std::error_code kCancelled = std::make_error_code(std::errc::operation_canceled);
inline const std::error_code kTimedOut = std::make_error_code(std::errc::timed_out);

inline Context cancellable() { return Context::background().with_cancel(); }

// A context that was cancelled.
inline Context over() {
  Context context = cancellable();
  context.cancel();
  return context;
}

struct Cancellable {
  const char* name;
  // True: it was granted.
  std::function<bool(const Context&, std::error_code&)> call;
  std::function<void(const Context&)> call_or_throw;
  std::function<void()> grant;
  // After a call that was granted: the next has to wait again.
  std::function<void()> undo = [] {};
};

// What was granted is still there.
inline void expect_granted(const Cancellable& operation) {
  std::error_code error = kCancelled;
  EXPECT_TRUE(operation.call(Context::background(), error)) << operation.name;
  EXPECT_FALSE(error) << operation.name;
  operation.undo();
}

inline Cancellable chan_send() {
  Chan<int> full(1);
  full.send(0);
  return {"Chan::send", [=](const Context& c, std::error_code& e) { return full.send(c, 1, e); },
          [=](const Context& c) { full.send(c, 1); }, [=] { (void)full.recv(); }};
}

inline Cancellable chan_recv() {
  Chan<int> empty(1);
  return {"Chan::recv",
          [=](const Context& c, std::error_code& e) { return empty.recv(c, e).has_value(); },
          [=](const Context& c) { (void)empty.recv(c); }, [=] { empty.send(1); }};
}

inline Cancellable void_chan_send() {
  Chan<void> full(1);
  full.send();
  return {"Chan::send", [=](const Context& c, std::error_code& e) { return full.send(c, e); },
          [=](const Context& c) { full.send(c); }, [=] { (void)full.recv(); }};
}

inline Cancellable void_chan_recv() {
  Chan<void> empty(1);
  return {"Chan::recv", [=](const Context& c, std::error_code& e) { return empty.recv(c, e); },
          [=](const Context& c) { (void)empty.recv(c); }, [=] { empty.send(); }};
}

inline Cancellable mutex_lock() {
  auto mutex = std::make_shared<Mutex>();
  mutex->lock();
  return {"Mutex::lock", [=](const Context& c, std::error_code& e) { return mutex->lock(c, e); },
          [=](const Context& c) { mutex->lock(c); }, [=] { mutex->unlock(); }};
}

inline Cancellable write_behind_writer() {
  auto mutex = std::make_shared<RWMutex>();
  mutex->lock();
  return {"RWMutex::lock", [=](const Context& c, std::error_code& e) { return mutex->lock(c, e); },
          [=](const Context& c) { mutex->lock(c); }, [=] { mutex->unlock(); }};
}

inline Cancellable write_behind_reader() {
  auto mutex = std::make_shared<RWMutex>();
  mutex->lock_shared();
  return {"RWMutex::lock", [=](const Context& c, std::error_code& e) { return mutex->lock(c, e); },
          [=](const Context& c) { mutex->lock(c); }, [=] { mutex->unlock_shared(); },
          [=] {
            mutex->unlock();
            mutex->lock_shared();
          }};
}

inline Cancellable read_behind_writer() {
  auto mutex = std::make_shared<RWMutex>();
  mutex->lock();
  return {"RWMutex::lock_shared",
          [=](const Context& c, std::error_code& e) { return mutex->lock_shared(c, e); },
          [=](const Context& c) { mutex->lock_shared(c); }, [=] { mutex->unlock(); },
          [=] {
            mutex->unlock_shared();
            mutex->lock();
          }};
}

inline Cancellable semaphore_acquire() {
  auto units = std::make_shared<Semaphore>(0);
  return {"Semaphore::acquire",
          [=](const Context& c, std::error_code& e) { return units->acquire(c, 2, e); },
          [=](const Context& c) { units->acquire(c, 2); }, [=] { units->release(2); }};
}

inline Cancellable cond_var_wait() {
  struct State {
    Mutex mutex;
    CondVar changed;
    int tokens = 0;  // guarded by mutex
  };
  auto state = std::make_shared<State>();
  auto has_token = [=] { return state->tokens > 0; };
  return {"CondVar::wait",
          [=](const Context& c, std::error_code& e) {
            std::unique_lock hold(state->mutex);
            if (!state->changed.wait(hold, c, has_token, e)) return false;
            --state->tokens;
            return true;
          },
          [=](const Context& c) {
            std::unique_lock hold(state->mutex);
            state->changed.wait(hold, c, has_token);
            --state->tokens;
          },
          [=] {
            {
              std::lock_guard hold(state->mutex);
              ++state->tokens;
            }
            state->changed.notify_one();
          }};
}

inline Cancellable wait_group_wait() {
  auto group = std::make_shared<WaitGroup>();
  group->add(1);
  return {
      "WaitGroup::wait", [=](const Context& c, std::error_code& e) { return group->wait(c, e); },
      [=](const Context& c) { group->wait(c); }, [=] { group->done(); }, [=] { group->add(1); }};
}

inline Cancellable worker_pool_submit() {
  struct State {
    Chan<void> go_on;
    WorkerPool pool{1};
    ~State() { go_on.close(); }
  };
  auto state = std::make_shared<State>();
  auto job = [go_on = state->go_on] { (void)go_on.recv(); };
  state->pool.submit(job);
  return {
      "WorkerPool::submit",
      [=](const Context& c, std::error_code& e) { return state->pool.submit(c, job, e); },
      [=](const Context& c) { state->pool.submit(c, job); },
      [=] { state->go_on.send(); },
  };
}

inline Cancellable task_group_go() {
  struct State {
    Chan<void> go_on;
    TaskGroup group;
    ~State() { go_on.close(); }
  };
  auto state = std::make_shared<State>();
  auto job = [go_on = state->go_on] { (void)go_on.recv(); };
  state->group.set_limit(1);
  state->group.go(job);
  return {
      "TaskGroup::go",
      [=](const Context& c, std::error_code& e) { return state->group.go(c, job, e); },
      [=](const Context& c) { state->group.go(c, job); },
      [=] { state->go_on.send(); },
  };
}

inline Cancellable task_group_wait() {
  struct State {
    Chan<void> go_on;
    TaskGroup group;
    ~State() { go_on.close(); }
    void start() {
      group.go([this] { (void)go_on.recv(); });
    }
  };
  auto state = std::make_shared<State>();
  state->start();
  return {"TaskGroup::wait",
          [=](const Context& c, std::error_code& e) { return state->group.wait(c, e); },
          [=](const Context& c) { state->group.wait(c); }, [=] { state->go_on.send(); },
          [=] { state->start(); }};
}

inline Cancellable join() {
  struct State {
    Chan<void> go_on;
    JoinHandle<int> joined;
    ~State() { go_on.close(); }
    void start() {
      joined = spawn([go_on = go_on] {
        (void)go_on.recv();
        return 7;
      });
    }
  };
  auto state = std::make_shared<State>();
  state->start();
  return {"JoinHandle::join",
          [=](const Context& c, std::error_code& e) { return state->joined.join(c, e) == 7; },
          [=](const Context& c) { (void)state->joined.join(c); }, [=] { state->go_on.send(); },
          [=] { state->start(); }};
}

// Those that also work without a runtime.
inline std::vector<Cancellable> all_cancellable_outside() {
  return {chan_send(),         chan_recv(),           void_chan_send(),      void_chan_recv(),
          mutex_lock(),        write_behind_writer(), write_behind_reader(), read_behind_writer(),
          semaphore_acquire(), cond_var_wait(),       wait_group_wait()};
}

inline std::vector<Cancellable> all_cancellable() {
  std::vector<Cancellable> all = all_cancellable_outside();
  for (auto make : {worker_pool_submit, task_group_go, task_group_wait, join})
    all.push_back(make());
  return all;
}

}  // namespace magpie::support
