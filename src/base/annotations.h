// annotations.h: which lock guards what, for Clang to check. Other compilers see nothing of it.
//
//   MAGPIE_GUARDED_BY(lock)       at a field: the lock is held whenever the field is used
//   MAGPIE_REQUIRES(lock)         at a function: the caller holds the lock
//   MAGPIE_RETURNS_LOCK(lock)     at an accessor: its result is that lock
//   MAGPIE_ACQUIRES(lock)         at a function that returns with the lock held
//   MAGPIE_TRIES_TO_ACQUIRE(yes)  the same, if it returns `yes`
//   MAGPIE_RELEASES(lock)         at a function that is called with the lock and returns without it
//   MAGPIE_ASSUMES_HELD           at Lock::assume_held()
//   MAGPIE_LOCK_TYPE, MAGPIE_GUARD_TYPE   at a class: it is a lock; it holds one while it lives
//   MAGPIE_UNCHECKED              at a function that Clang cannot follow; a comment says why
//
// Without an argument, a method of a lock or of a guard means its own lock.
// The check is within one function at a time and does not see through references that were kept.
// Atomics that are read without the lock are not annotated: their comments say who writes them.
#pragma once

#ifdef __clang__
#define MAGPIE_ANNOTATION(...) __attribute__((__VA_ARGS__))
#else
#define MAGPIE_ANNOTATION(...)
#endif

#define MAGPIE_GUARDED_BY(...) MAGPIE_ANNOTATION(guarded_by(__VA_ARGS__))
#define MAGPIE_REQUIRES(...) MAGPIE_ANNOTATION(requires_capability(__VA_ARGS__))
#define MAGPIE_RETURNS_LOCK(...) MAGPIE_ANNOTATION(lock_returned(__VA_ARGS__))
#define MAGPIE_ACQUIRES(...) MAGPIE_ANNOTATION(acquire_capability(__VA_ARGS__))
#define MAGPIE_TRIES_TO_ACQUIRE(...) MAGPIE_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define MAGPIE_RELEASES(...) MAGPIE_ANNOTATION(release_capability(__VA_ARGS__))
#define MAGPIE_ASSUMES_HELD MAGPIE_ANNOTATION(assert_capability(this))
#define MAGPIE_LOCK_TYPE MAGPIE_ANNOTATION(capability("lock"))
#define MAGPIE_GUARD_TYPE MAGPIE_ANNOTATION(scoped_lockable)
#define MAGPIE_UNCHECKED MAGPIE_ANNOTATION(no_thread_safety_analysis)
