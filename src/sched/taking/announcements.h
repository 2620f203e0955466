// announcements.h: many tellers tell one listener of their records. A record is on the list at most
// once.
//
// Protocol  [announce]
//
//   teller:    writes what it tells of;  announced = true                             (announce)
//              was it true already?  -> the listener is about to hear of the record
//              else pushes the record on the list
//   listener:  takes the whole list;  for each record:                                    (hear)
//              announced = false;  reads what the teller tells of
//
// No loss   Both change `announced` by an exchange. A teller that finds it true comes before the
//           listener's exchange. So that exchange reads the teller's, and the listener sees what
//           the teller wrote. A teller that finds it false pushes the record again. A plain store
//           by the listener could wipe out an announcement that the listener has not seen.
// Record    The record's link belongs to the teller while `announced` is false, and to the listener
//           while it is true.
// Listener  One at a time. It takes the whole list or nothing. So no record can come back while
//           another one is popped.
// Orders    [announce] exchanges of `announced` are acq_rel. A push to the list releases, taking it
//           acquires.
// Proof     tests/model/announce_model.cc
#pragma once

#include "base/atomic.h"

namespace magpie::sched {

template <class Record>
struct Announcement {
  base::Atomic<bool> announced{false};    // atomic [announce]
  base::Guarded<Record*> next = nullptr;  // guarded by announced
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

  // Calls hear_of for each record, in no order. hear_of sees everything that happened before the
  // last announce() of that record.
  template <class HearOf>
  void hear(HearOf hear_of) {
    for (Record* record = list_.exchange(nullptr, base::acquire); record != nullptr;) {
      Record* next = record->announcement.next;
      // What comes later is announced again.
      record->announcement.announced.exchange(false, base::acq_rel);
      hear_of(record);
      record = next;
    }
  }

 private:
  base::Atomic<Record*> list_{nullptr};  // atomic [announce]
};

}  // namespace magpie::sched
