// selector_case.h: cases that a Selector keeps and uses again. Not part of the API.
#pragma once

#include <magpie/detail/cxx20.h>

#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include <magpie/detail/api.h>
#include <magpie/detail/select_case.h>

namespace magpie::detail {

struct MAGPIE_API AnyCase {
  virtual ~AnyCase() = default;
  virtual void enter(SelectCase& entry, OtherCases& others, std::size_t& index) = 0;
  virtual void finish(ChanResult result) = 0;
};

template <class Case>
struct Kept : AnyCase {
  template <class... Args>
  explicit Kept(Args&&... args) : one(std::forward<Args>(args)...) {}
  void enter(SelectCase& entry, OtherCases& others, std::size_t& index) override {
    one.enter(entry, others, index);
  }
  void finish(ChanResult result) override { (void)one.finish(result); }

  Case one;
};

template <class T, class F>
struct KeptReceive : Kept<ReceiveCase<T, F>> {
  template <class G>
  KeptReceive(const Chan<T>& its, G&& f)
      : Kept<ReceiveCase<T, F>>(its, std::forward<G>(f)), channel(its) {}

  Chan<T> channel;
};

template <class T, class F>
class KeptSend : public AnyCase {
 public:
  template <class V, class G>
  KeptSend(const Chan<T>& channel, V&& value, G&& f)
      : channel_(channel), value_(std::forward<V>(value)), handler_(std::forward<G>(f)) {}

  void enter(SelectCase& entry, OtherCases&, std::size_t& index) override {
    ++index;
    if (!out_ && !prepare()) return;
    entry.channel = ChanAccess::core(channel_);
    entry.slot = out_->address();
    entry.direction = Direction::send;
  }
  void finish(ChanResult result) override {
    if (result == ChanResult::closed) throw_sent_on_closed();
    out_->let_go();
    out_.reset();
    next_.reset();
    (void)handler_();
  }

 private:
  // False: there is nothing left to send.
  bool prepare() {
    if constexpr (std::is_copy_constructible_v<T>) {
      next_.emplace(std::as_const(value_));
    } else {
      if (spent_) return false;
      if (!next_) next_.emplace(std::move(value_));
    }
    out_.emplace(*next_);
    spent_ = true;  // not before: what throws above is tried again
    return true;
  }

  Chan<T> channel_;
  T value_;
  std::optional<T> next_;  // what is sent next
  std::optional<Outgoing<T>> out_;
  bool spent_ = false;
  [[no_unique_address]] F handler_;
};

template <class F>
struct KeptSend<void, F> : Kept<SendCase<void, F>> {
  template <class G>
  KeptSend(const Chan<void>& its, G&& f)
      : Kept<SendCase<void, F>>(its, std::forward<G>(f)), channel(its) {}

  Chan<void> channel;
};

// Throws std::logic_error if there is one already.
MAGPIE_API void check_only_otherwise(bool has_one);

}  // namespace magpie::detail
