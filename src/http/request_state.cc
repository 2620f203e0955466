#include "http/request_state.h"

#include <algorithm>
#include <stdexcept>

#include <magpie/http/error.h>

#include "http/connection.h"
#include "http/server_core.h"
#include "http/text.h"

namespace magpie::http {

namespace {

const std::string kNothing;

constexpr std::size_t kMostSegments = 256;
constexpr std::size_t kTextKept = 1024;

void shrink_text(std::string& text) {
  if (text.capacity() > kTextKept) give_back(text);
}

// The methods that there are, so that no text is made for them.
const std::string kMethods[] = {"GET",   "HEAD",    "POST",  "PUT",    "DELETE",
                                "PATCH", "OPTIONS", "TRACE", "CONNECT"};

}  // namespace

void RequestState::begin(const HeadLimits& limits, bool may_skip_line) {
  may_skip_line_ = may_skip_line;
  parser_.begin(Parser::Kind::request, limits);
  body_ = Body::none_yet;
  failure_ = 400;
}

Parser::Progress RequestState::parse() {
  // A line end before the request is left over from a client that ends bodies with one.
  if (may_skip_line_ && input.size() > 0) {
    if (input.bytes() == "\r") return Parser::Progress::need_more;
    may_skip_line_ = false;
    if (input.bytes().starts_with("\r\n")) input.drop(2);
  }
  return parser_.parse_head(input.bytes());
}

std::string& RequestState::new_text() {
  if (texts_used_ == texts_.size()) texts_.push_back(std::make_unique<std::string>());
  std::string& text = *texts_[texts_used_++];
  text.clear();
  return text;
}

Target RequestState::target_parts() const {
  return parse_target(slice(head().target)).value_or(Target{});
}

void RequestState::begin_texts() {
  texts_used_ = 0;
  target_ = nullptr;
  query_texts_.clear();
  field_texts_.clear();
  whole_.clear();
  read_in_parts_ = read_whole_ = was_loaded_ = false;
  match_ = {};
  values_.segments.clear();
  path_.clear();
  segments_.clear();

  std::string_view name = slice(head().method);
  auto known = std::find(std::begin(kMethods), std::end(kMethods), name);
  method_ = known != std::end(kMethods) ? &*known : &new_text().assign(name);
}

void RequestState::begin_refused() {
  begin_texts();
  path_ = slice(head().target);
  body_at_ = 0;
  body_ = Body::failed;
  continue_awaited_ = false;
}

int RequestState::route(const Router& router) {
  begin_texts();
  const std::string_view name = slice(head().method);
  // Who asks for a tunnel takes any 2xx for one, and what follows for its own: a proxy in front
  // would pass on requests that it has not looked at.
  if (name == kTunnelMethod) {
    path_ = slice(head().target);
    return 501;
  }
  std::optional<Target> parts = parse_target(slice(head().target));
  if (!parts) {
    path_ = slice(head().target);
    return 400;
  }
  std::string_view path = parts->path.empty() ? std::string_view("/") : parts->path;
  if (path == "*") {
    path_ = path;
    return name == "OPTIONS" ? 0 : 400;  // matches nothing
  }
  if (!append_decoded(path_, path, Plus::stays) || path_.find('\0') != std::string::npos)
    return 400;
  if (const int refusal = split_path(path)) return refusal;
  match_ = router.match(name, segments_, values_);
  fill_params();
  return 0;
}

// Decodes the segments one by one: an escaped slash belongs to its segment. Not 0: the refusal.
int RequestState::split_path(std::string_view path) {
  const bool escaped = path_.size() != path.size();
  segment_texts_.clear();
  segment_texts_.reserve(path.size());  // or the views would move
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find('/', at + 1), path.size());
    std::string_view segment = path.substr(at + 1, end - at - 1);
    at = end;
    if (segment.empty() && at < path.size()) return 400;  // "//"
    if (escaped) {
      std::size_t begin = segment_texts_.size();
      (void)append_decoded(segment_texts_, segment, Plus::stays);
      segment = std::string_view(segment_texts_).substr(begin);
    }
    if (!stays_below(segment)) return 400;
    if (segments_.size() == kMostSegments) return 414;
    segments_.push_back(segment);
  }
  return 0;
}

void RequestState::fill_params() {
  params_.resize(std::max(params_.size(), values_.segments.size()));
  for (std::size_t i = 0; i < values_.segments.size(); ++i) {
    std::string& value = params_[i];
    std::size_t segment = values_.segments[i];
    if (values_.rest && i + 1 == values_.segments.size()) {
      value.clear();
      for (std::size_t s = segment; s < segments_.size(); ++s) {
        if (s > segment) value += '/';
        value += segments_[s];
      }
    } else {
      value.assign(segments_[segment]);
    }
  }
}

const std::string& RequestState::method() { return *method_; }

const std::string& RequestState::target() {
  if (target_ == nullptr) {
    std::string& text = new_text();
    std::optional<Target> parts = parse_target(slice(head().target));
    if (!parts) {
      text.assign(slice(head().target));
    } else {
      text.assign(parts->path.empty() ? std::string_view("/") : parts->path).append(parts->query);
    }
    target_ = &text;
  }
  return *target_;
}

const std::string& RequestState::host() {
  const std::string* text = field("host");
  if (text != nullptr) return *text;
  // A target may name one all the same.
  std::string_view authority = target_parts().authority;
  return authority.empty() ? kNothing : new_text().assign(authority);
}

const std::string& RequestState::param(std::string_view name) const {
  if (match_.route == nullptr) return kNothing;
  const auto& names = match_.route->names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return params_[i];
  }
  return kNothing;
}

// Nothing is kept of a query but what was asked for: a client may send thousands of names.
const std::string* RequestState::query(std::string_view name) {
  std::string_view text = target_parts().query;
  if (!text.empty()) text.remove_prefix(1);
  const char* const begin = text.data();
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    if (one.empty()) continue;
    std::size_t equals = std::min(one.find('='), one.size());
    if (!decodes_to(one.substr(0, equals), name)) continue;
    const auto at = static_cast<std::uint32_t>(one.data() - begin);
    for (const QueryText& known : query_texts_) {
      if (known.at == at) return known.value;
    }
    std::string& value = new_text();
    // What cannot be decoded is left out: a query is the handler's business, not the protocol's.
    if (!append_decoded(value, one.substr(std::min(equals + 1, one.size())), Plus::is_space)) {
      --texts_used_;
      continue;
    }
    query_texts_.push_back({at, &value});
    return &value;
  }
  return nullptr;
}

std::string_view RequestState::field_value(std::size_t i) const {
  const Head::Field& field = head().fields[i];
  // The authority of the target counts, not what else the client says (RFC 9112, 3.2.2).
  if (*slice(head().target).data() != '/' && same_name(slice(field.name), "host")) {
    std::string_view authority = target_parts().authority;
    if (!authority.empty()) return authority;
  }
  return slice(field.value);
}

const std::string* RequestState::field(std::string_view name) {
  const auto& fields = head().fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!same_name(slice(fields[i].name), name)) continue;
    if (field_texts_.size() < fields.size()) field_texts_.resize(fields.size());
    if (field_texts_[i] == nullptr) field_texts_[i] = &new_text().assign(field_value(i));
    return field_texts_[i];
  }
  return nullptr;
}

const Context& RequestState::context() {
  if (!context_) {
    context_ = connection_->core().context().with_cancel();
    connection_->clock().cancel_if_peer_leaves(*context_);
  }
  return *context_;
}

void RequestState::end_context() {
  if (!context_) return;
  connection_->clock().forget_context();
  context_->cancel();
  context_.reset();
}

void RequestState::forget() {
  input.clear();
  input.shrink();
  body_at_ = 0;
  give_back(0);
}

void RequestState::finish() {
  const std::size_t used = body_at_;
  input.drop(body_at_);
  body_at_ = 0;
  // A buffer that this request did not need was made for another one.
  if (input.size() == 0 && input.has_grown() && used <= input.first_capacity()) input.shrink();
  give_back(whole_.size());
}

// What has grown large is given back, what a usual request needs is kept.
void RequestState::give_back(std::size_t body_size) {
  constexpr std::size_t kTextsKept = 32, kSegmentsKept = 32;
  for (std::size_t i = 0; i < std::min(texts_used_, texts_.size()); ++i) shrink_text(*texts_[i]);
  if (texts_.size() > kTextsKept) texts_.resize(kTextsKept);
  texts_used_ = 0;
  for (std::string& value : params_) shrink_text(value);
  shrink_text(path_);
  shrink_text(segment_texts_);
  if (segments_.capacity() > kSegmentsKept) segments_ = std::vector<std::string_view>();
  if (query_texts_.capacity() > kTextsKept) query_texts_ = std::vector<QueryText>();
  // A body of a usual size has its memory for the next one.
  constexpr std::size_t kBodyKept = 4096, kLargeBodyKept = 16 * 1024;
  if (whole_.capacity() > kBodyKept &&
      (whole_.capacity() > kLargeBodyKept || body_size < whole_.capacity() / 4))
    http::give_back(whole_);
  release_body_memory();
}

}  // namespace magpie::http
