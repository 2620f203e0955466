// pprof.h: writes profiles in pprof's format, a message of Protocol Buffers (profile.proto).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace magpie::observe {

// A message: fields one after the other, each a number and a value.
class Message {
 public:
  void add(std::uint32_t field, std::uint64_t value);
  void add(std::uint32_t field, std::string_view bytes);
  void add(std::uint32_t field, std::span<const std::uint64_t> values);  // packed
  const std::string& bytes() const { return bytes_; }

 private:
  void add_varint(std::uint64_t value);
  std::string bytes_;
};

// A profile. Stacks are addresses to return to, innermost first. pprof finds their names in the
// files that the process has mapped.
class Pprof {
 public:
  struct Type {
    std::string_view name, unit;
  };
  // What the values of each sample mean; and what was sampled, and how often.
  Pprof(std::span<const Type> values, Type period, std::uint64_t every);

  struct Label {
    std::string_view key, text;
  };
  void add_sample(std::span<const std::uintptr_t> stack, std::span<const std::uint64_t> values,
                  Label label);
  void add_comment(std::string_view text);
  std::string finish();

 private:
  struct Mapping {
    std::uint64_t begin, end;
  };

  std::uint64_t number_of(std::string_view text);  // in the table of strings
  std::uint64_t location_of(std::uint64_t address);
  void add_mappings();
  Message type(const Type& type);

  Message profile_;
  std::vector<Mapping> mappings_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, std::uint64_t> string_numbers_;
  std::unordered_map<std::uint64_t, std::uint64_t> locations_;
};

}  // namespace magpie::observe
