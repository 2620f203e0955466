#include "sched/child_settings.h"

#include <sys/prctl.h>

#include <utility>

#include "sched/core/m.h"
#include "sched/current.h"
#include "sched/threads/pin.h"

namespace magpie::sched {

// Outside the runtime, maybe without a P: all that is used belongs to the thread.
ChildSettings::ChildSettings() : m_(current_m()), cpu_(-1), slack_ns_(0) {
  if (m_ == nullptr) return;
  cpu_ = m_->os.pinned_to;
  slack_ns_ = m_->os.timer_slack_before_ns != 0 ? prctl(PR_GET_TIMERSLACK) : 0;
  restore_settings_of(m_);
}

ChildSettings::~ChildSettings() {
  if (m_ == nullptr) return;
  if (cpu_ != -1) Pins::bind_again(m_, cpu_);
  if (slack_ns_ > 0) {
    m_->os.timer_slack_before_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, slack_ns_);
  }
}

void restore_settings_of(M* m) {
  Pins::release(m);
  if (m->os.timer_slack_before_ns != 0)
    prctl(PR_SET_TIMERSLACK, std::exchange(m->os.timer_slack_before_ns, 0));
}

}  // namespace magpie::sched
