#include "sched/run/short_way.h"

#include <magpie/detail/short_way.h>

#include "base/atomic.h"

namespace magpie {

constinit detail::ShortWay detail::short_way;

namespace sched {

using detail::short_way;
using detail::ShortWay;

void close_short_way() {
  short_way.mutex_held.store(ShortWay::kMutexHeldClosed, base::relaxed);
  short_way.writer.store(ShortWay::kWriterClosed, base::relaxed);
  short_way.reader_limit.store(0, base::relaxed);
  short_way.most_units.store(-1, base::relaxed);
}

void open_short_way() {
  short_way.mutex_held.store(ShortWay::kMutexHeld, base::relaxed);
  short_way.writer.store(ShortWay::kWriter, base::relaxed);
  short_way.reader_limit.store(ShortWay::kNoReaders, base::relaxed);
  short_way.most_units.store(ShortWay::kMostUnits, base::relaxed);
}

}  // namespace sched
}  // namespace magpie
