#include <stdexcept>
#include <utility>

#include <magpie/select.h>

namespace magpie {

Selector::Selector(Selector&& other) noexcept
    : cases_(std::move(other.cases_)), has_otherwise_(std::exchange(other.has_otherwise_, false)) {}

Selector& Selector::operator=(Selector&& other) noexcept {
  if (this == &other) return *this;
  cases_ = std::move(other.cases_);
  other.cases_.clear();
  has_otherwise_ = std::exchange(other.has_otherwise_, false);
  return *this;
}

std::size_t Selector::add(std::unique_ptr<detail::AnyCase> one) {
  if (cases_.size() == detail::kMostCases)
    throw std::length_error("magpie: Selector: more than 65,536 cases");
  cases_.push_back(std::move(one));
  return cases_.size() - 1;
}

void Selector::clear() noexcept {
  cases_.clear();
  has_otherwise_ = false;
}

std::size_t Selector::select() {
  table_.resize(cases_.size());
  in_lock_order_.resize(cases_.size());
  detail::OtherCases others;
  std::size_t index = 0;
  for (auto& one : cases_) {
    table_[index].channel = nullptr;  // as it was the last time, unless the case says otherwise
    one->enter(table_[index], others, index);
  }
  detail::Choice choice =
      detail::select(others.request(table_.data(), in_lock_order_.data(), cases_.size()));
  std::size_t chosen = others.index_of(choice);
  detail::ChanResult result = table_[chosen].result;
  cases_[chosen]->finish(result);  // the handler may add cases
  return chosen;
}

}  // namespace magpie

namespace magpie::detail {

void check_not_nil(const Chan<void>& ended) {
  if (ended == Chan<void>::nil())
    throw std::invalid_argument("magpie: spawn_closing() with the nil channel");
}

void check_only_otherwise(bool has_one) {
  if (has_one) throw std::logic_error("magpie: Selector: a second otherwise()");
}

}  // namespace magpie::detail
