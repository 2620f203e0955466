#include <stdexcept>

#include <magpie/select.h>

namespace magpie {

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
  detail::Rest rest;
  std::size_t index = 0;
  for (auto& one : cases_) {
    table_[index].channel = nullptr;  // as it was the last time, unless the case says otherwise
    one->enter(table_[index], rest, index);
  }
  detail::Choice choice =
      detail::select(rest.request(table_.data(), in_lock_order_.data(), cases_.size()));
  std::size_t chosen = rest.index_of(choice);
  detail::ChanResult result = table_[chosen].result;
  cases_[chosen]->finish(result);  // the handler may add cases
  return chosen;
}

}  // namespace magpie

namespace magpie::detail {

void check_only_otherwise(bool has_one) {
  if (has_one) throw std::logic_error("magpie: Selector: a second otherwise()");
}

}  // namespace magpie::detail
