#include <cinttypes>
#include <cstdio>
#include <ostream>

#include "analysis/export.h"
#include "analysis/json_text.h"
#include "sched/wait_reason.h"

namespace magpie::analysis {

namespace {

struct Field {
  const char* name;
  enum class Form {
    number,
    goroutine,
    place,
    source,
    why,
    reason,
    address,
    code,
    string,
    state
  } form;
};

// The names of the arguments of each kind, in their order.
struct Fields {
  Kind kind;
  Field fields[trace::kMostArgs];
};

using Form = Field::Form;
constexpr Fields kFields[] = {
    {Kind::proc_begin, {{"thread", Form::number}}},
    {Kind::create,
     {{"g", Form::goroutine},
      {"body", Form::code},
      {"place", Form::place},
      {"caller", Form::code}}},
    {Kind::run, {{"g", Form::goroutine}, {"place", Form::place}}},
    {Kind::yield, {{"place", Form::place}}},
    {Kind::park, {{"reason", Form::reason}, {"object", Form::address}}},
    {Kind::ready, {{"g", Form::goroutine}, {"place", Form::place}, {"source", Form::source}}},
    {Kind::taken, {{"of_p", Form::number}, {"g", Form::goroutine}, {"why", Form::why}}},
    {Kind::stop, {{"g", Form::goroutine}, {"place", Form::place}}},
    {Kind::back, {{"g", Form::goroutine}}},
    {Kind::let_out, {{"g", Form::goroutine}}},
    {Kind::join_begin, {{"g", Form::goroutine}}},
    {Kind::join_end, {{"g", Form::goroutine}, {"parent", Form::goroutine}}},
    {Kind::steal, {{"victim", Form::number}, {"count", Form::number}, {"runnext", Form::number}}},
    {Kind::steal_miss, {{"victim", Form::number}, {"count", Form::number}}},
    {Kind::spill, {{"count", Form::number}}},
    {Kind::global_take, {{"count", Form::number}}},
    {Kind::thread_wake, {{"of_p", Form::number}}},
    {Kind::search_end, {{"found", Form::number}}},
    {Kind::poll, {{"count", Form::number}}},
    {Kind::timers, {{"count", Form::number}}},
    {Kind::procs, {{"count", Form::number}}},
    {Kind::region_begin, {{"name", Form::string}}},
    {Kind::region_end, {{"name", Form::string}}},
    {Kind::task_begin, {{"task", Form::number}, {"parent", Form::number}, {"name", Form::string}}},
    {Kind::task_end, {{"task", Form::number}}},
    {Kind::log, {{"category", Form::string}, {"text", Form::string}}},
    {Kind::queue, {{"ring", Form::number}, {"global", Form::number}}},
    {Kind::lost, {{"count", Form::number}}},
    {Kind::state,
     {{"g", Form::goroutine},
      {"state", Form::state},
      {"reason", Form::reason},
      {"object", Form::address},
      {"body", Form::code}}},
    {Kind::quota,
     {{"periods", Form::number},
      {"throttled_periods", Form::number},
      {"throttled_ns", Form::number},
      {"milli_cpus", Form::number}}},
    {Kind::name, {{"g", Form::goroutine}, {"name", Form::string}}},
};

const char* text_of_why(std::uint64_t why) {
  static constexpr const char* kWhys[] = {"blocking", "blocks undeclared", "used its slice",
                                          "world stops"};
  return why < 4 ? kWhys[why] : "";
}

const char* text_of_state(std::uint64_t state) {
  static constexpr const char* kStates[] = {"free",    "fresh",   "runnable",
                                            "running", "waiting", "ended"};
  return state < 6 ? kStates[state] : "";
}

void put(const ExportSource& source, std::string& line, Form form, std::uint64_t value) {
  char number[32];
  switch (form) {
    case Form::number:
    case Form::goroutine:
      line += std::to_string(value);
      return;
    case Form::place:
      line += quoted(value < kPlaces ? text(static_cast<Place>(value)) : "");
      return;
    case Form::source:
      line += quoted(value < 4 ? text(static_cast<Source>(value)) : "");
      return;
    case Form::why:
      line += quoted(text_of_why(value));
      return;
    case Form::state:
      line += quoted(text_of_state(value));
      return;
    case Form::reason:
      line += quoted(sched::text(static_cast<sched::WaitReason>(value)));
      return;
    case Form::string:
      line += quoted(source.string(value));
      return;
    case Form::code:
      if (const Symbol symbol = source.symbol(value); !symbol.function.empty()) {
        line += quoted(symbol.function);
        return;
      }
      [[fallthrough]];
    case Form::address:
      std::snprintf(number, sizeof number, "\"0x%" PRIx64 "\"", value);
      line += number;
      return;
  }
}

}  // namespace

void export_json(const ExportSource& source, std::ostream& out) {
  Event event;
  std::string line;
  while (source.next(event)) {
    line = "{\"t\":" + std::to_string(event.time_ns) + ",\"p\":" + std::to_string(event.proc);
    if (event.goroutine != 0) line += ",\"on\":" + std::to_string(event.goroutine);
    line += ",\"kind\":" + quoted(trace::name_of(event.kind));
    for (const Fields& fields : kFields) {
      if (fields.kind != event.kind) continue;
      for (std::size_t i = 0; i < trace::kMostArgs && fields.fields[i].name != nullptr; ++i) {
        line += ",\"" + std::string(fields.fields[i].name) + "\":";
        put(source, line, fields.fields[i].form, event.args[i]);
      }
    }
    out << line << "}\n";
  }
}

}  // namespace magpie::analysis
