#include "observe/pprof.h"

#include <cstdio>

namespace magpie::observe {
namespace {

// The numbers of profile.proto.
namespace field {
constexpr std::uint32_t kSampleType = 1, kSample = 2, kMapping = 3, kLocation = 4, kString = 6,
                        kPeriodType = 11, kPeriod = 12, kComment = 13;
constexpr std::uint32_t kTypeName = 1, kTypeUnit = 2;
constexpr std::uint32_t kSampleLocations = 1, kSampleValues = 2, kSampleLabel = 3;
constexpr std::uint32_t kLabelKey = 1, kLabelText = 2;
constexpr std::uint32_t kMappingId = 1, kMappingBegin = 2, kMappingEnd = 3, kMappingOffset = 4,
                        kMappingFile = 5;
constexpr std::uint32_t kLocationId = 1, kLocationMapping = 2, kLocationAddress = 3;
}  // namespace field

constexpr std::uint32_t kVarint = 0, kBytes = 2;

}  // namespace

void Message::add_varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

void Message::add(std::uint32_t field, std::uint64_t value) {
  add_varint(field << 3 | kVarint);
  add_varint(value);
}

void Message::add(std::uint32_t field, std::string_view bytes) {
  add_varint(field << 3 | kBytes);
  add_varint(bytes.size());
  bytes_.append(bytes);
}

void Message::add(std::uint32_t field, std::span<const std::uint64_t> values) {
  Message packed;
  for (std::uint64_t value : values) packed.add_varint(value);
  add(field, packed.bytes());
}

Pprof::Pprof(std::span<const Type> values, Type period, std::uint64_t every) {
  number_of("");  // the first string has to be empty
  for (const Type& value : values) profile_.add(field::kSampleType, type(value).bytes());
  profile_.add(field::kPeriodType, type(period).bytes());
  profile_.add(field::kPeriod, every);
  add_mappings();
}

Message Pprof::type(const Type& type) {
  Message message;
  message.add(field::kTypeName, number_of(type.name));
  message.add(field::kTypeUnit, number_of(type.unit));
  return message;
}

std::uint64_t Pprof::number_of(std::string_view text) {
  auto [at, is_new] = string_numbers_.try_emplace(std::string(text), strings_.size());
  if (is_new) strings_.emplace_back(text);
  return at->second;
}

// The code that is mapped. pprof takes the first mapping for the program, and so does the kernel.
void Pprof::add_mappings() {
  std::FILE* file = std::fopen("/proc/self/maps", "re");
  if (file == nullptr) return;
  char line[4400];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    unsigned long begin, end, offset;
    char permissions[5];
    int name_at = 0;
    if (std::sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &begin, &end, permissions, &offset,
                    &name_at) != 4)
      continue;
    if (permissions[2] != 'x' || name_at == 0) continue;
    std::string_view name(line + name_at);
    if (name.ends_with('\n')) name.remove_suffix(1);
    mappings_.push_back({begin, end});
    Message mapping;
    mapping.add(field::kMappingId, mappings_.size());
    mapping.add(field::kMappingBegin, begin);
    mapping.add(field::kMappingEnd, end);
    mapping.add(field::kMappingOffset, offset);
    mapping.add(field::kMappingFile, number_of(name));
    profile_.add(field::kMapping, mapping.bytes());
  }
  std::fclose(file);
}

std::uint64_t Pprof::location_of(std::uint64_t address) {
  auto [at, is_new] = locations_.try_emplace(address, locations_.size() + 1);
  if (!is_new) return at->second;
  Message location;
  location.add(field::kLocationId, at->second);
  for (std::size_t i = 0; i < mappings_.size(); ++i) {
    if (address >= mappings_[i].begin && address < mappings_[i].end)
      location.add(field::kLocationMapping, i + 1);
  }
  location.add(field::kLocationAddress, address);
  profile_.add(field::kLocation, location.bytes());
  return at->second;
}

void Pprof::add_sample(std::span<const std::uintptr_t> stack, std::span<const std::uint64_t> values,
                       Label label) {
  std::vector<std::uint64_t> locations;
  // In the middle of the call, not behind it: that may be another line, or another function.
  for (std::uintptr_t pc : stack) locations.push_back(location_of(pc - 1));
  Message sample;
  sample.add(field::kSampleLocations, locations);
  sample.add(field::kSampleValues, values);
  Message labelled;
  labelled.add(field::kLabelKey, number_of(label.key));
  labelled.add(field::kLabelText, number_of(label.text));
  sample.add(field::kSampleLabel, labelled.bytes());
  profile_.add(field::kSample, sample.bytes());
}

void Pprof::add_comment(std::string_view text) { profile_.add(field::kComment, number_of(text)); }

std::string Pprof::finish() {
  for (const std::string& text : strings_) profile_.add(field::kString, std::string_view(text));
  return profile_.bytes();
}

}  // namespace magpie::observe
