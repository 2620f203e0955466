// announcements.h: many tell one that they are there. What is told of is a record of theirs, and at
// most once.
//
// Protocol  [announce]
//
//   teller:    what it is about;  announced = true                                    (announce)
//              was it true already?  -> the listener is about to hear of it
//              else pushes the record on the list
//   listener:  takes the whole list;  for each record:                                    (hear)
//              announced = false;  looks what it is about
//
// No loss   Both change `announced` by an exchange. A teller that finds it true comes before the
//           listener's exchange, which therefore reads the teller's, and the listener sees what it
//           is about. One that finds it false pushes the record again. A plain store by the
//           listener could wipe out what it has not seen.
// Record    Its link is the teller's while `announced` is false, and the listener's while it is
//           true.
// Listener  One at a time. It takes all or nothing, so there is no record that comes back while
//           another is popped.
// Orders    [announce] exchanges of `announced` are acq_rel; the list is pushed to by release,
//           taken by acquire.
// Proof     tests/model/announce_model.cc
#pragma once

#include "base/atomic.h"

namespace magpie::sched {

template <class Record>
struct Announcement {
  base::Atomic<bool> announced{false};    // atomic [announce]
  base::Guarded<Record*> next = nullptr;  // by announced
};

// A Record has a member Announcement<Record> announcement.
template <class Record>
class Announcements {
 public:
  void announce(Record* record) {
    if (record->announcement.announced.exchange(true, base::acq_rel)) return;
    Record* head = list_.load(base::relaxed);
    do {
      record->announcement.next = head;
    } while (!list_.compare_exchange_weak(head, record, base::release, base::relaxed));
  }

  // Calls hear_of for each, in no order. It finds what was so when the last announce() of that
  // record was called.
  template <class HearOf>
  void hear(HearOf hear_of) {
    for (Record* record = list_.exchange(nullptr, base::acquire); record != nullptr;) {
      Record* next = record->announcement.next;
      record->announcement.announced.exchange(
          false, base::acq_rel);  // what comes later is announced again
      hear_of(record);
      record = next;
    }
  }

 private:
  base::Atomic<Record*> list_{nullptr};  // atomic [announce]
};

}  // namespace magpie::sched
