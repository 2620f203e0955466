#include "analysis/core_dump.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/core_file.h"
#include "analysis/core_stacks.h"

namespace magpie::analysis {

namespace {

constexpr std::size_t kMostIds = 8;
constexpr std::size_t kMostName = 200;
constexpr std::size_t kMostRecordBytes = std::size_t{1} << 30;  // of one slab
constexpr std::uint8_t kReasonBits = 0x1f;  // the others are a mark of live dumps

// The table of sched/run/layout.h.
class Layout {
 public:
  explicit Layout(CoreStacks& program) {
    const std::optional<std::uint64_t> table = program.address_of("magpie_layout");
    if (!table) throw std::runtime_error("the program has no symbol magpie_layout");
    struct {
      char name[44];
      std::uint32_t value;
    } entry;
    for (std::uint64_t at = *table; program.read(at, &entry, sizeof entry); at += sizeof entry) {
      const std::string name(entry.name, strnlen(entry.name, sizeof entry.name));
      if (name.empty()) return;
      if (name.starts_with("WaitReason."))
        reasons_[entry.value] = name.substr(std::strlen("WaitReason."));
      else if (name.starts_with("GState."))
        states_[entry.value] = name.substr(std::strlen("GState."));
      else
        values_[name] = entry.value;
    }
    throw std::runtime_error("the table magpie_layout is not in the program's file");
  }

  std::uint32_t operator[](const char* name) const {
    auto found = values_.find(name);
    if (found == values_.end())
      throw std::runtime_error("the program's Magpie is of another version: its table has no " +
                               std::string(name));
    return found->second;
  }
  bool has(const char* name) const { return values_.contains(name); }
  std::string reason(std::uint8_t number) const { return text(reasons_, number); }
  std::string state(std::uint8_t number) const { return text(states_, number); }

 private:
  static std::string text(const std::map<std::uint32_t, std::string>& texts, std::uint32_t number) {
    auto found = texts.find(number);
    return found == texts.end() ? "unknown" : found->second;
  }

  std::map<std::string, std::uint32_t> values_;
  std::map<std::uint32_t, std::string> reasons_, states_;
};

// A goroutine's record.
struct Record {
  std::uint64_t address, id, creator, saved_sp, stack, body, extra;
  std::uint8_t state, reason;
  bool bound;
};

struct Group {
  std::uint64_t count = 0;
  std::array<std::uint64_t, kMostIds> ids{};
  std::uint64_t creator = 0;
};

class Dump {
 public:
  Dump(const std::string& path, const std::string& program) {
    std::string error;
    core_ = CoreFile::open(path, error);
    if (core_ == nullptr) throw std::runtime_error(error);
    stacks_ = CoreStacks::open(*core_, program, error);
    if (stacks_ == nullptr) throw std::runtime_error(path + ": " + error);
    layout_.emplace(*stacks_);
    const std::optional<std::uint64_t> place = stacks_->address_of("magpie_runtime");
    std::uint64_t pointer = 0;
    if (!place || !stacks_->read(*place, &pointer, sizeof pointer))
      throw std::runtime_error(path + ": the program has no symbol magpie_runtime");
    runtime_ = word(pointer);
    if (runtime_ == 0) throw std::runtime_error(path + ": no runtime runs in it");
  }

  CoreDump write(std::ostream& out) {
    list_threads();
    list_goroutines();
    find_shared_stacks();
    for (const Record& g : goroutines_) add(g);
    out << "magpie: " << goroutines_.size() << " goroutines, in the core file of process "
        << core_->pid() << "\n";
    std::vector<const std::pair<const Key, Group>*> sorted;
    for (const auto& one : groups_) sorted.push_back(&one);
    std::ranges::sort(sorted, [](const auto* a, const auto* b) {
      return a->second.count != b->second.count ? a->second.count > b->second.count
                                                : a->second.ids[0] < b->second.ids[0];
    });
    for (const auto* one : sorted) print(out, one->first, one->second);
    return {goroutines_.size(), groups_.size(), stacks_->unwound()};
  }

 private:
  enum NoStack : std::uint32_t { fresh = ~0u - 3, in_place, gone, has_no };
  struct Key {
    std::string does, name;
    std::uint64_t body;
    std::int64_t thread;  // 0: none
    std::uint32_t frames;
    auto operator<=>(const Key&) const = default;
  };

  std::uint64_t word(std::uint64_t address) const { return core_->word(address).value_or(0); }
  std::uint32_t number(std::uint64_t address) const {
    return static_cast<std::uint32_t>(word(address));
  }
  std::uint64_t at(std::uint64_t base, const char* name) const { return base + (*layout_)[name]; }

  // The Ms that run a goroutine.
  void list_threads() {
    std::size_t most = 1'000'000;  // in a damaged file they may be a ring
    for (std::uint64_t m = word(at(runtime_, "Runtime.newest_m")); m != 0 && most != 0; --most) {
      const bool is_there =
          (word(at(m, "M.never_ran")) & 0xff) == 0 && (word(at(m, "M.has_ended")) & 0xff) == 0;
      if (const std::uint64_t g = word(at(m, "M.current")); g != 0 && is_there)
        thread_of_[g] = static_cast<std::int32_t>(number(at(m, "M.tid")));
      m = word(at(m, "M.older"));
    }
  }

  void list_goroutines() {
    const std::size_t size = (*layout_)["G.size"];
    if (size == 0) throw std::runtime_error("the table magpie_layout is damaged");
    const std::uint32_t pools = number(at(runtime_, "Runtime.pool_count"));
    for (std::uint32_t i = 0; i < std::min(pools, 1024u); ++i) {
      const std::uint64_t pool =
          at(runtime_, "Runtime.pools") + std::uint64_t{i} * (*layout_)["Pool.size"];
      const std::uint64_t slabs = word(at(pool, "Pool.slabs"));
      const std::uint64_t count = word(at(pool, "Pool.slab_count"));
      for (std::uint64_t k = 0; k < count; ++k) {
        const std::uint64_t slab = slabs + k * (*layout_)["Slab.size"];
        if (!core_->word(slab)) break;
        list_slab(word(at(slab, "Slab.records")), word(at(slab, "Slab.carved")), size);
      }
    }
    std::ranges::sort(goroutines_, {}, &Record::id);
  }

  void list_slab(std::uint64_t records, std::uint64_t carved, std::size_t size) {
    slab_.resize(std::min<std::uint64_t>(carved, kMostRecordBytes / size) * size);
    slab_.resize(core_->read(records, slab_.data(), slab_.size()));
    const Layout& where = *layout_;
    const std::size_t id = where["G.id"], creator = where["G.creator"], sp = where["G.saved_sp"],
                      stack = where["G.stack"], body = where["G.body"], extra = where["G.extra"],
                      state = where["G.state"], reason = where["G.wait_reason"],
                      bound = where["G.bound"];
    if (std::max({id, creator, sp, stack, body, extra, state, reason, bound}) + 8 > size)
      throw std::runtime_error("the table magpie_layout is damaged");
    for (std::size_t k = 0; k + size <= slab_.size(); k += size) {
      const char* memory = slab_.data() + k;
      auto word_of = [memory](std::size_t part) {
        std::uint64_t value;
        std::memcpy(&value, memory + part, sizeof value);
        return value;
      };
      auto byte_of = [memory](std::size_t part) { return static_cast<std::uint8_t>(memory[part]); };
      Record g{records + k,
               word_of(id),
               word_of(creator),
               word_of(sp),
               word_of(stack),
               word_of(body),
               word_of(extra),
               byte_of(state),
               static_cast<std::uint8_t>(byte_of(reason) & kReasonBits),
               byte_of(bound) != 0};
      const std::string& name = state_of(g.state);
      if (name != "free" && name != "ended") goroutines_.push_back(g);
    }
  }

  const std::string& state_of(std::uint8_t number) {
    auto [found, is_new] = states_.try_emplace(number);
    if (is_new) found->second = layout_->state(number);
    return found->second;
  }

  // Goroutines that a joiner runs in place are on the joiner's stack. All on it but the innermost
  // wait for the one that they run.
  void find_shared_stacks() {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> by_stack;
    for (std::size_t i = 0; i < goroutines_.size(); ++i)
      if (goroutines_[i].stack != 0)
        by_stack.emplace_back(goroutines_[i].stack, static_cast<std::uint32_t>(i));
    std::ranges::sort(by_stack);
    auto is_inner = [this](std::uint32_t i) {
      const Record& g = goroutines_[i];
      return std::tuple(thread_of_.contains(g.address),
                        state_of(g.state) != "waiting" || layout_->reason(g.reason) != "join",
                        g.id);
    };
    for (std::size_t first = 0, end; first < by_stack.size(); first = end) {
      std::size_t innermost = first;
      for (end = first + 1; end < by_stack.size() && by_stack[end].first == by_stack[first].first;
           ++end)
        if (is_inner(by_stack[end].second) > is_inner(by_stack[innermost].second)) innermost = end;
      for (std::size_t i = first; i < end; ++i)
        if (i != innermost) runs_another_[goroutines_[by_stack[i].second].address] = true;
    }
  }

  std::uint32_t frames_of(const Record& g, std::int64_t thread) {
    if (runs_another_.contains(g.address)) return in_place;
    if (thread != 0) {
      auto found = core_->threads().find(thread);
      if (found == core_->threads().end()) return gone;
      return stacks_->running(found->second);
    }
    if (state_of(g.state) == "fresh") return fresh;
    if (g.stack == 0 || g.saved_sp == 0) return has_no;
    return stacks_->parked(g.saved_sp).value_or(gone);
  }

  void add(const Record& g) {
    auto on = thread_of_.find(g.address);
    key_.thread = on == thread_of_.end() ? 0 : on->second;
    const std::string& state = state_of(g.state);
    key_.does = state == "waiting" ? layout_->reason(g.reason) : state;
    key_.name = g.extra == 0 ? std::string() : name_of(g.extra);
    key_.body = g.body;
    key_.frames = frames_of(g, key_.thread);
    Group& group = groups_[key_];
    if (group.count == 0) group.creator = g.creator;
    if (group.count < kMostIds) group.ids[group.count] = g.id;
    ++group.count;
  }

  std::string name_of(std::uint64_t extra) const {
    if (!layout_->has("String.text")) return {};
    const std::uint64_t name = at(extra, "GExtra.name");
    std::string text(std::min<std::uint64_t>(word(at(name, "String.length")), kMostName), '\0');
    text.resize(core_->read(word(at(name, "String.text")), text.data(), text.size()));
    return text;
  }

  void print(std::ostream& out, const Key& key, const Group& group) {
    out << "\ngoroutine " << group.ids[0];
    if (!key.name.empty()) out << " (" << key.name << ")";
    out << " [" << key.does << "]";
    if (group.creator != 0) out << ", started by goroutine " << group.creator;
    if (key.thread != 0) out << ", on thread " << key.thread;
    if (group.count > 1) {
      out << ", and " << group.count - 1 << " more alike:";
      for (std::size_t i = 1; i < std::min<std::uint64_t>(group.count, kMostIds); ++i)
        out << " " << group.ids[i];
      if (group.count > kMostIds) out << " ...";
    }
    out << "\n";
    if (const std::string body = stacks_->function(key.body); !body.empty())
      out << "    its body: " << body << "\n";
    switch (key.frames) {
      case fresh:
        out << "    no stack: it has not run yet\n";
        return;
      case in_place:
        out << "    no stack: it runs another goroutine itself, on its own stack\n";
        return;
      case gone:
        out << "    no stack: it is not in the core file\n";
        return;
      case has_no:
        out << "    no stack: it has none\n";
        return;
      default:
        for (std::uint64_t pc : stacks_->frames(key.frames))
          out << "    at " << stacks_->place(pc) << "\n";
    }
  }

  std::unique_ptr<CoreFile> core_;
  std::unique_ptr<CoreStacks> stacks_;
  std::optional<Layout> layout_;
  std::uint64_t runtime_ = 0;
  std::unordered_map<std::uint64_t, std::int64_t> thread_of_;  // by a goroutine's record
  std::vector<Record> goroutines_;
  std::unordered_map<std::uint64_t, bool> runs_another_;
  std::map<std::uint8_t, std::string> states_;
  std::vector<char> slab_;
  Key key_{};
  std::map<Key, Group> groups_;
};

}  // namespace

CoreDump dump_core(const std::string& path, const std::string& program, std::ostream& out) {
  return Dump(path, program).write(out);
}

}  // namespace magpie::analysis
