#include "http/request_state.h"

#include <algorithm>
#include <stdexcept>

#include <magpie/http/error.h>

#include "http/connection.h"
#include "http/server_core.h"
#include "http/text.h"

namespace magpie::http {

namespace {

const std::string kNoParameter;

// The methods that there are, so that no text is made for them.
const std::string kMethods[] = {"GET",   "HEAD",    "POST",  "PUT",    "DELETE",
                                "PATCH", "OPTIONS", "TRACE", "CONNECT"};

}  // namespace

void RequestState::begin(const HeadLimits& limits) {
  may_skip_line_ = true;
  parser_.begin(Parser::Kind::request, limits);
  body_ = Body::none_yet;
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

std::string_view RequestState::raw_path() const {
  std::string_view target = slice(head().target);
  target = target.substr(0, target.find('?'));
  if (target.starts_with('/')) return target;
  // "http://host/path", as for a proxy.
  std::size_t scheme = target.find("://");
  if (scheme == std::string_view::npos) return target;
  std::size_t path = target.find('/', scheme + 3);
  return path == std::string_view::npos ? std::string_view("/") : target.substr(path);
}

bool RequestState::route(const Router& router) {
  texts_used_ = 0;
  target_ = nullptr;
  query_parsed_ = false;
  query_.clear();
  field_texts_.clear();
  whole_.clear();
  read_in_parts_ = read_whole_ = false;
  match_ = {};
  values_.segments.clear();

  std::string_view name = slice(head().method);
  auto known = std::find(std::begin(kMethods), std::end(kMethods), name);
  method_ = known != std::end(kMethods) ? &*known : &new_text().assign(name);

  path_.clear();
  segments_.clear();
  std::string_view path = raw_path();
  if (!path.starts_with('/')) {
    path_ = path;
    return path == "*" && name == "OPTIONS";  // matches nothing
  }
  if (!append_decoded(path_, path, Plus::stays) || path_.find('\0') != std::string::npos)
    return false;
  // Decoded one by one: an escaped slash belongs to its segment.
  const bool escaped = path_.size() != path.size();
  segment_texts_.clear();
  segment_texts_.reserve(path.size());  // or the views would move
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find('/', at + 1), path.size());
    std::string_view segment = path.substr(at + 1, end - at - 1);
    at = end;
    if (escaped) {
      std::size_t begin = segment_texts_.size();
      (void)append_decoded(segment_texts_, segment, Plus::stays);
      segment = std::string_view(segment_texts_).substr(begin);
    }
    if (segment == ".." || segment == ".") return false;
    segments_.push_back(segment);
  }
  match_ = router.match(name, segments_, values_);
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
  return true;
}

const std::string& RequestState::method() { return *method_; }

const std::string& RequestState::target() {
  if (target_ == nullptr) target_ = &new_text().assign(slice(head().target));
  return *target_;
}

const std::string& RequestState::param(std::string_view name) const {
  if (match_.route == nullptr) return kNoParameter;
  const auto& names = match_.route->names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return params_[i];
  }
  return kNoParameter;
}

const std::string* RequestState::query(std::string_view name) {
  if (!query_parsed_) {
    query_parsed_ = true;
    std::string_view text = slice(head().target);
    std::size_t mark = text.find('?');
    text = mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1);
    while (!text.empty()) {
      std::string_view one = text.substr(0, text.find('&'));
      text.remove_prefix(std::min(one.size() + 1, text.size()));
      if (one.empty()) continue;
      std::size_t equals = std::min(one.find('='), one.size());
      std::string &key = new_text(), &value = new_text();
      // What cannot be decoded is left out: a query is the handler's business, not the protocol's.
      if (append_decoded(key, one.substr(0, equals), Plus::is_space) &&
          append_decoded(value, one.substr(std::min(equals + 1, one.size())), Plus::is_space)) {
        query_.push_back({&key, &value});
      }
    }
  }
  for (const QueryValue& one : query_) {
    if (*one.name == name) return one.value;
  }
  return nullptr;
}

const std::string* RequestState::field(std::string_view name) {
  const auto& fields = head().fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!same_name(slice(fields[i].name), name)) continue;
    if (field_texts_.size() < fields.size()) field_texts_.resize(fields.size());
    if (field_texts_[i] == nullptr) field_texts_[i] = &new_text().assign(slice(fields[i].value));
    return field_texts_[i];
  }
  return nullptr;
}

const Context& RequestState::context() {
  if (!context_) {
    context_ = connection_->core().context().with_cancel();
    connection_->watched().cancel_if_peer_leaves(*context_);
  }
  return *context_;
}

void RequestState::end_context() {
  if (!context_) return;
  connection_->watched().forget_context();
  context_->cancel();
  context_.reset();
}

void RequestState::forget() {
  input.clear();
  input.shrink();
  body_at_ = 0;
  if (whole_.capacity() > 4096) whole_ = {};
}

void RequestState::finish() {
  input.drop(body_at_);
  body_at_ = 0;
  if (whole_.capacity() > 64 * 1024) whole_ = {};
  if (input.size() == 0 && input.capacity() > 64 * 1024) input.shrink();
}

}  // namespace magpie::http
