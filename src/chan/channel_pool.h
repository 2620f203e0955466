// channel_pool.h: where channels come from and go to. Their memory never becomes anything else.
//
// A goroutine that parks releases the channel's lock after it can be woken. It may have dropped the
// last handle before that release has ended, which then reads the lock once more ([quick-lock]). So
// channels are kept for ever: as many as there ever were at a time, without their rings. Each
// thread has some at hand.
#pragma once

namespace magpie::chan {

struct Channel;

// Throws std::bad_alloc. Its lock is free, its lists are empty, the rest is what it was.
Channel* take_channel();
void give_channel(Channel* channel) noexcept;

}  // namespace magpie::chan
