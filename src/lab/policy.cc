#include "lab/policy.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace magpie::lab {
namespace {

template <class T>
T choice(const std::string& name, const std::string& value,
         const std::vector<std::pair<std::string, T>>& all) {
  std::string known;
  for (const auto& [text, chosen] : all) {
    if (text == value) return chosen;
    known += (known.empty() ? "" : ", ") + text;
  }
  throw std::invalid_argument(name + "=" + value + ": there are " + known);
}

std::int64_t number(const std::string& name, const std::string& value, std::int64_t least) {
  std::size_t used = 0;
  std::int64_t result = 0;
  try {
    result = std::stoll(value, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != value.size() || result < least)
    throw std::invalid_argument(name + "=" + value + ": a number from " + std::to_string(least) +
                                " is expected");
  return result;
}

}  // namespace

std::uint64_t Policy::to_steal(std::uint64_t waiting) const {
  switch (amount) {
    case Amount::one:
      return 1;
    case Amount::quarter:
      return std::max<std::uint64_t>(1, waiting / 4);
    case Amount::half:
      return sched::policy::to_steal(waiting);
    case Amount::all:
      return waiting;
  }
  return 1;
}

std::uint32_t Policy::budget_after(bool success, std::uint32_t rounds_before) const {
  switch (spin) {
    case Spin::off:
      return 0;
    case Spin::fixed:
      return sched::policy::kSpinMost / 2;
    case Spin::adaptive:
    case Spin::for_ever:
      break;
  }
  return success ? sched::policy::budget_after_success(rounds_before)
                 : sched::policy::budget_after_failure(rounds_before);
}

void set(Policy& policy, const std::string& assignment) {
  const std::size_t at = assignment.find('=');
  const std::string name = assignment.substr(0, at);
  const std::string value = at == std::string::npos ? "" : assignment.substr(at + 1);
  const std::vector<std::pair<std::string, bool>> switches = {{"on", true}, {"off", false}};
  if (name == "amount")
    policy.amount = choice<Amount>(name, value,
                                   {{"one", Amount::one},
                                    {"quarter", Amount::quarter},
                                    {"half", Amount::half},
                                    {"all", Amount::all}});
  else if (name == "end")
    policy.end = choice<End>(name, value, {{"oldest", End::oldest}, {"newest", End::newest}});
  else if (name == "runnext")
    policy.runnext = choice<Runnext>(
        name, value,
        {{"never", Runnext::never}, {"late", Runnext::late}, {"at-once", Runnext::at_once}});
  else if (name == "spin")
    policy.spin = choice<Spin>(name, value,
                               {{"off", Spin::off},
                                {"fixed", Spin::fixed},
                                {"adaptive", Spin::adaptive},
                                {"for-ever", Spin::for_ever}});
  else if (name == "first")
    policy.first = choice<First>(name, value, {{"local", First::local}, {"global", First::global}});
  else if (name == "order")
    policy.order = choice<Order>(name, value,
                                 {{"rings", Order::rings},
                                  {"uniform", Order::uniform},
                                  {"near-first", Order::near_first},
                                  {"one-random", Order::one_random},
                                  {"two-random", Order::two_random},
                                  {"by-number", Order::by_number}});
  else if (name == "throttle")
    policy.throttles = choice<bool>(name, value, switches);
  else if (name == "slot")
    policy.uses_runnext = choice<bool>(name, value, switches);
  else if (name == "reserve")
    policy.reserves = choice<bool>(name, value, switches);
  else if (name == "detours")
    policy.detours = choice<bool>(name, value, switches);
  else if (name == "least")
    policy.least = static_cast<std::uint64_t>(number(name, value, 1));
  else if (name == "look")
    policy.look_every = static_cast<std::int32_t>(number(name, value, 1));
  else if (name == "slots")
    policy.slots = static_cast<std::uint64_t>(number(name, value, 2));
  else if (name == "patience")
    policy.patience = number(name, value, 0);
  else
    throw std::invalid_argument(assignment +
                                ": there are amount, end, runnext, spin, first, order, throttle, "
                                "slot, reserve, detours, least, look, slots, patience");
}

const std::vector<Alternative>& alternatives() {
  static const std::vector<Alternative> all = {
      {"product", ""},
      {"steal one", "amount=one"},
      {"steal a quarter", "amount=quarter"},
      {"steal all", "amount=all"},
      {"steal the newest", "end=newest"},
      {"runnext never", "runnext=never"},
      {"runnext at once", "runnext=at-once"},
      {"no spinning", "spin=off"},
      {"fixed spinning", "spin=fixed"},
      {"global first", "first=global"},
      {"any victim", "order=uniform"},
      {"near first", "order=near-first"},
      {"victims by number", "order=by-number"},
      {"two random victims", "order=two-random"},
      {"not below 2", "least=2"},
      {"not below 4", "least=4"},
      {"look every 7", "look=7"},
      {"look every 509", "look=509"},
      {"no throttling", "throttle=off"},
      {"no reserving", "reserve=off"},
      {"no detours", "detours=off"},
  };
  return all;
}

Policy policy_of(const std::string& changes) {
  Policy policy;
  std::istringstream parts(changes);
  for (std::string part; std::getline(parts, part, ',');)
    if (!part.empty()) set(policy, part);
  return policy;
}

std::string Costs::text() const {
  std::ostringstream out;
  out << "pop " << pop << ", switch " << switching << ", spawn " << spawn << ", ready " << ready
      << ", probe " << probe_near << "/" << probe_far << ", steal " << steal_near << "/"
      << steal_far << ", miss " << miss << "/" << miss_far << ", global " << global
      << ", wake call " << wake_call << ", wake " << wake << ", spin round " << spin_round
      << ", timer " << timer;
  return out.str();
}

}  // namespace magpie::lab
