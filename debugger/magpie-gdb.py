# magpie-gdb.py: goroutines in gdb, in a live process and in a core file.
#
#   info goroutines [TEXT]       number, state, thread, name, and where; TEXT chooses lines with it
#   info ps                      the Ps, their queues, the threads that hold them; the other threads
#   goroutine N                  look at goroutine N: bt, up, frame, info locals show its frames
#   goroutine N COMMAND          run a gdb command there, and come back
#   goroutine apply all COMMAND  the same for all goroutines, or for some: goroutine apply 3 7-9 bt
#   goroutine stacks [TEXT]      all stacks, equal ones folded
#   goroutine back               back to the thread that was looked at before
#
# Nothing of the program is changed, and nothing runs in it. A parked goroutine's registers lie on
# its stack. An unwinder shows its frames as the callers of the selected thread's innermost frame,
# which is hidden. When the program goes on, the thread is itself again.
#
# The library carries this text, in the section .debug_gdb_scripts, and a table of offsets
# (src/sched/run/layout.h). So neither debug information nor the library's sources are needed.
import bisect
import collections
import itertools
import re
import struct

import gdb
import gdb.frames
import gdb.unwinder
from gdb.FrameDecorator import FrameDecorator

MOST_FRAMES = 200  # of one goroutine, when stacks are compared
MOST_LISTED = 1000  # goroutines, unless a text chooses them

# Where context::swap (src/context/switch.h) leaves the registers of a parked goroutine.
Machine = collections.namedtuple('Machine', 'pc sp fp pc_at fp_at bytes')
MACHINES = {
    'i386:x86-64': Machine('rip', 'rsp', 'rbp', 8, 16, 24),
    'aarch64': Machine('pc', 'sp', 'x29', 8, 16, 32),
}


def machine():
    name = gdb.selected_inferior().architecture().name()
    for known, found in MACHINES.items():
        if name.startswith(known):
            return found
    raise gdb.GdbError('magpie: no goroutines are known on %s' % name)


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def read_word(address):
    return struct.unpack('<Q', read(address, 8))[0]


def read_u32(address):
    return struct.unpack('<I', read(address, 4))[0]


def read_words(address, count):
    return struct.unpack('<%dQ' % count, read(address, 8 * count)) if count else ()


def address_of(symbol):
    try:
        return int(gdb.parse_and_eval("(unsigned long)&'%s'" % symbol))
    except gdb.error:
        return None


def read_layout():
    address = address_of('magpie_layout')
    if address is None:
        raise gdb.GdbError('magpie: this program has no symbol magpie_layout: it does not use '
                           'Magpie, was stripped (gdb finds symbols in a separate file: see '
                           '"symbol-file"), or has not loaded the library yet')
    layout = {}
    reasons = {}
    while True:
        name, value = struct.unpack('<44sI', read(address, 48))
        name = name.split(b'\0')[0].decode()
        if not name:
            return layout, reasons
        if name.startswith('WaitReason.'):
            reasons[value] = name[len('WaitReason.'):]
        else:
            layout[name] = value
        address += 48


class Goroutine:
    """A record as it was read. `thread` is the M whose registers are the goroutine's."""

    def __init__(self, address, fields):
        self.address = address
        self.id, self.creator, self.state, self.reason = fields[:4]
        self.saved_sp, self.stack, self.body, self.extra, self.bound = fields[4:]
        self.m = None
        self.runs = None  # the goroutine that it runs in place, instead of waiting for it
        self.name = ''
        self.remark = ''

    def title(self):
        name = ' "%s"' % self.name if self.name else ''
        return 'goroutine %d%s [%s]' % (self.id, name, self.status())

    def status(self):
        if self.state != 'waiting':
            return self.state + (': ' + self.remark if self.remark else '')
        reason = self.reason
        if self.runs is not None:
            reason += ', runs %d in place' % self.runs.id
        return '%s: %s' % (self.state, reason)


class M:
    def __init__(self, address, number, tid):
        self.address, self.number, self.tid = address, number, tid
        self.p = self.current = 0
        self.asleep = self.in_poller = self.searching = self.blocks = False
        self.thread = None  # gdb's


class P:
    pass


class Snapshot:
    """All goroutines, Ms and Ps, read at once. The program stands still meanwhile."""

    def __init__(self):
        self.layout, self.reasons = read_layout()
        place = address_of('magpie_runtime')
        if place is None:
            raise gdb.GdbError("magpie: this program has no symbol 'magpie_runtime'")
        try:
            self.runtime = read_word(read_word(place))
        except gdb.MemoryError:
            self.runtime = 0
        if self.runtime == 0:
            raise gdb.GdbError('magpie: no runtime runs')
        self.machine = machine()
        self.read_goroutines()
        self.read_ms()
        self.stopped = set(self.line('stopped'))
        self.find_threads()

    def at(self, base, name):
        return base + self.layout[name]

    # The records of each slab of each pool, and how many there are.
    def carved(self):
        layout = self.layout
        for number in range(read_u32(self.at(self.runtime, 'Runtime.pool_count'))):
            pool = self.at(self.runtime, 'Runtime.pools') + number * layout['Pool.size']
            slabs = read_word(self.at(pool, 'Pool.slabs'))
            for i in range(read_word(self.at(pool, 'Pool.slab_count'))):
                slab = slabs + i * layout['Slab.size']
                yield (read_word(self.at(slab, 'Slab.records')),
                       read_word(self.at(slab, 'Slab.carved')))

    def read_goroutines(self):
        layout = self.layout
        states = {value: name[7:] for name, value in layout.items() if name.startswith('GState.')}
        size = layout['G.size']
        self.goroutines = []
        for records, carved in self.carved():
            memory = read(records, carved * size)
            for k in range(carved):
                g = self.goroutine_at(memory, k * size, records + k * size, states)
                if g is not None:
                    self.goroutines.append(g)
        self.goroutines.sort(key=lambda g: g.id)
        self.by_address = {g.address: g for g in self.goroutines}

    def goroutine_at(self, memory, offset, address, states):
        def byte(name):
            return memory[offset + self.layout[name]]

        def word(name):
            return struct.unpack_from('<Q', memory, offset + self.layout[name])[0]

        state = states.get(byte('G.state'), '?')
        if state in ('free', 'ended'):
            return None
        # The upper three bits are a mark of dumps.
        reason = self.reasons.get(byte('G.wait_reason') & 0x1f, 'unknown')
        g = Goroutine(address, (word('G.id'), word('G.creator'), state, reason, word('G.saved_sp'),
                                word('G.stack'), word('G.body'), word('G.extra'), byte('G.bound')))
        if g.extra:
            g.name = self.string(self.at(g.extra, 'GExtra.name'))
        return g

    def string(self, address):
        if 'String.text' not in self.layout:
            return ''
        try:
            text = read_word(self.at(address, 'String.text'))
            length = read_word(self.at(address, 'String.length'))
            return read(text, min(length, 200)).decode('utf-8', 'replace')
        except gdb.MemoryError:
            return '?'

    def read_ms(self):
        threads = {thread.ptid[1]: thread for thread in gdb.selected_inferior().threads()}
        self.ms = []
        m = read_word(self.at(self.runtime, 'Runtime.newest_m'))
        while m != 0:
            def flag(name):
                return read(self.at(m, name), 1)[0] != 0

            if not flag('M.never_ran') and not flag('M.has_ended'):
                made = M(m, read_u32(self.at(m, 'M.number')), read_u32(self.at(m, 'M.tid')))
                made.p = read_word(self.at(m, 'M.p'))
                made.current = read_word(self.at(m, 'M.current'))
                made.searching = flag('M.searching')
                made.asleep = flag('M.listed')
                made.in_poller = flag('M.in_poller')
                made.blocks = read_u32(self.at(m, 'M.blocking_calls')) % 2 != 0
                made.thread = threads.get(made.tid)
                self.ms.append(made)
            m = read_word(self.at(m, 'M.older'))
        self.ms.reverse()

    def line(self, name):
        """The goroutines' addresses in a line of the global queue."""
        shards = self.at(self.runtime, 'Runtime.shards')
        found = []
        for i in range(read_u32(self.at(self.runtime, 'Runtime.shard_count'))):
            line = self.at(shards + i * self.layout['Shard.size'], 'Shard.' + name)
            chunk = read_word(self.at(line, 'Line.head'))
            while chunk != 0:
                first = read_u32(self.at(chunk, 'Chunk.first'))
                end = read_u32(self.at(chunk, 'Chunk.end'))
                found += read_words(self.at(chunk, 'Chunk.items') + 8 * first, end - first)
                chunk = read_word(self.at(chunk, 'Chunk.next'))
        return found

    # A goroutine's registers are in a thread, or on its stack, or in neither case its own: a
    # goroutine that a joiner runs in place is on the joiner's stack, above it.
    def find_threads(self):
        for m in self.ms:
            g = self.by_address.get(m.current)
            if g is None:
                continue
            g.m = m
            if g.state == 'runnable':
                g.state = 'stopped' if g.address in self.stopped else 'runnable'
                g.remark = 'with its thread'
            elif g.state == 'running' and m.blocks:
                g.remark = 'in a blocking call'
            elif g.state == 'running' and not self.holds_p(m):
                g.remark = 'without a P'
        sharing = collections.defaultdict(list)
        for g in self.goroutines:
            if g.stack:
                sharing[g.stack].append(g)
        for group in sharing.values():
            self.order_in_place(group)
        self.find_threads_between_goroutines(sharing)

    def holds_p(self, m):
        return m.p != 0 and read_word(self.at(m.p, 'P.holder')) == m.address

    @staticmethod
    def order_in_place(group):
        """Goroutines that share a stack. All but the innermost wait for the one that they run."""
        if len(group) == 1:
            return

        def innermost_last(g):
            waits_for_join = g.state == 'waiting' and g.reason == 'join'
            return (g.m is not None, not waits_for_join, g.id)

        group.sort(key=innermost_last)
        for outer, inner in zip(group, group[1:]):
            outer.runs = inner

    # In the few instructions of a switch a thread is still on the stack of the goroutine that it
    # leaves.
    def find_threads_between_goroutines(self, sharing):
        stacks = sorted(sharing)
        with ThreadKept():
            for m in self.ms:
                if m.thread is None:
                    continue
                sp = registers_of(m.thread, self.machine)[1]
                at = bisect.bisect_right(stacks, sp)
                if at == len(stacks) or sp < read_word(self.at(stacks[at], 'Stack.low')):
                    continue
                innermost = sharing[stacks[at]][-1]
                innermost.m = innermost.m or m

    def find(self, text):
        try:
            number = int(text, 0)
        except ValueError:
            raise gdb.GdbError('magpie: "%s" is no number of a goroutine' % text)
        for g in self.goroutines:
            if g.id == number:
                return g
        raise gdb.GdbError('magpie: there is no goroutine %d now (see: info goroutines)' % number)

    def ps(self):
        states = {value: name[7:] for name, value in self.layout.items()
                  if name.startswith('PState.')}
        count = read_u32(self.at(self.runtime, 'Runtime.ps_in_use'))
        table = read_word(self.at(self.runtime, 'Runtime.ps'))
        for address in read_words(table, count):
            p = P()
            p.address = address
            p.index = read_u32(self.at(address, 'P.index'))
            p.state = states.get(read(self.at(address, 'P.state'), 1)[0], '?')
            holder = read_word(self.at(address, 'P.holder'))
            p.m = next((m for m in self.ms if m.address == holder), None)
            p.next = read_word(self.at(address, 'P.next'))
            p.queue = self.ring(address)
            yield p

    def ring(self, p):
        """Of P p: reserved goroutines, ring, inbox, in the order in which they would run."""
        slots = self.layout['P.ring_slots']
        items = read_words(self.at(p, 'P.ring'), slots)
        first = read_word(self.at(p, 'P.reserved_first'))
        end = read_word(self.at(p, 'P.reserved_end'))
        head = read_word(self.at(p, 'P.head'))
        tail = read_word(self.at(p, 'P.tail'))
        found = [items[i % slots] for i in range(first, min(end, first + slots))]
        found += [items[i % slots] for i in range(head, min(tail, head + slots))]
        places = self.layout['P.inbox_places']
        inbox = read_words(self.at(p, 'P.inbox'), places)
        first = read_u32(self.at(p, 'P.inbox_first'))
        end = read_u32(self.at(p, 'P.inbox_end'))
        count = (end - first) % (1 << 32)
        found += [inbox[(first + i) % places] for i in range(min(count, places))]
        return found

    def number(self, address):
        g = self.by_address.get(address)
        return str(g.id) if g is not None else '?'

    def numbers(self, addresses):
        most = 20
        text = ' '.join(self.number(address) for address in addresses[:most])
        return text + (' ... %d in all' % len(addresses) if len(addresses) > most else '')


# ---- frames


def registers_of(thread, of):
    """The thread's own pc and sp. It is selected afterwards."""
    thread.switch()
    frame = gdb.newest_frame()
    return int(frame.pc()), int(frame.read_register(of.sp))


class ThreadKept:
    """Whatever is selected inside, afterwards the thread and frame are as before."""

    def __enter__(self):
        self.thread = gdb.selected_thread()
        try:
            self.level = gdb.selected_frame().level()
        except gdb.error:
            self.level = 0

    def __exit__(self, *_):
        if self.thread is None or not self.thread.is_valid():
            return
        self.thread.switch()
        select_level(self.level)


def select_level(level):
    frame = gdb.newest_frame()
    while frame is not None and frame.level() < level:
        frame = frame.older()
    if frame is not None:
        frame.select()


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class ParkedUnwinder(gdb.unwinder.Unwinder):
    """While `shown` is set: the caller of one thread's innermost frame is a parked goroutine."""

    Shown = collections.namedtuple('Shown', 'g machine thread thread_pc thread_sp pc sp fp')

    def __init__(self):
        super().__init__('magpie-goroutine')
        self.shown = None

    def show(self, g, of):
        """Shows g as called by the selected thread."""
        self.hide()
        thread = gdb.selected_thread()
        if thread is None:
            raise gdb.GdbError('magpie: no thread is selected')
        pc, sp = registers_of(thread, of)
        saved = g.saved_sp
        goes_on_at = read_word(saved + of.pc_at)
        if goes_on_at == 0:
            raise gdb.GdbError('magpie: the stack of goroutine %d is not in this core file '
                               '(generate-core-file leaves out what is behind a guard page, the '
                               'kernel does not; or run the program with MAGPIE_GUARDS=protect)'
                               % g.id)
        self.shown = self.Shown(g, of, thread.num, pc, sp, goes_on_at, saved + of.bytes,
                                read_word(saved + of.fp_at))
        gdb.invalidate_cached_frames()
        innermost(self.shown).select()

    def hide(self):
        if self.shown is None:
            return
        self.shown = None
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        shown = self.shown
        if shown is None:
            return None
        of = shown.machine
        sp = pending.read_register(of.sp)
        pc = pending.read_register(of.pc)
        if int(sp) != shown.thread_sp or int(pc) != shown.thread_pc:
            return None
        # gdb ends a stack at a frame that is not above its callee. So this one is just below.
        below = gdb.Value(shown.sp - of.bytes - 64).cast(sp.type)
        info = pending.create_unwind_info(FrameId(below, pc))
        fp_type = pending.read_register(of.fp).type
        info.add_saved_register(of.pc, gdb.Value(shown.pc).cast(pc.type))
        info.add_saved_register(of.sp, gdb.Value(shown.sp).cast(sp.type))
        info.add_saved_register(of.fp, gdb.Value(shown.fp).cast(fp_type))
        return info


def innermost(shown):
    """The goroutine's own innermost frame: behind the thread's."""
    frame = gdb.newest_frame()
    while frame is not None:
        if frame.pc() == shown.pc and int(frame.read_register(shown.machine.sp)) == shown.sp:
            return frame
        frame = frame.older()
    raise gdb.GdbError('magpie: the frames of goroutine %d are not to be read' % shown.g.id)


class HiddenThreadFrames:
    """A frame filter: leaves out the frames of the thread that lends itself to a goroutine."""

    name = 'magpie-goroutine'
    priority = 1000

    @property
    def enabled(self):
        shown = unwinder.shown
        thread = gdb.selected_thread()
        return shown is not None and thread is not None and thread.num == shown.thread

    def filter(self, frames):
        shown = unwinder.shown

        def is_threads(decorated):
            frame = decorated.inferior_frame()
            return int(frame.read_register(shown.machine.sp)) != shown.sp

        return map(PlainlyNamed, itertools.dropwhile(is_threads, frames))


class PlainlyNamed(FrameDecorator):
    """As bt without filters prints it: a function's name without the types of its parameters."""

    def function(self):
        frame = self.inferior_frame()
        return frame.name() or frame.pc()


unwinder = ParkedUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)
gdb.frame_filters[HiddenThreadFrames.name] = HiddenThreadFrames()


class Looking:
    """Inside, the goroutine's innermost frame is selected. `stays`: afterwards too."""

    def __init__(self, snapshot, g, stays=False):
        self.snapshot, self.g, self.stays = snapshot, g, stays
        self.kept = ThreadKept()

    def __enter__(self):
        self.before = unwinder.shown
        self.kept.__enter__()
        try:
            self.select()
        except BaseException:
            self.restore()
            raise

    def select(self):
        g = self.g
        in_place = 0
        while g.runs is not None:  # its frames are below those of the goroutine that it runs
            g = g.runs
            in_place += 1
        unwinder.hide()
        if g.m is not None:
            if g.m.thread is None:
                raise gdb.GdbError('magpie: goroutine %d runs on thread %d, which gdb does not know'
                                   % (g.id, g.m.tid))
            g.m.thread.switch()
            gdb.newest_frame().select()
        elif g.stack:
            unwinder.show(g, self.snapshot.machine)
        else:
            raise gdb.GdbError('magpie: goroutine %d has not begun: it will call %s'
                               % (g.id, task_at(g.body)))
        self.pass_goroutines_in_place(in_place)

    @staticmethod
    def pass_goroutines_in_place(count):
        """Selects the first frame below `count` goroutines that others run in place."""
        for frame in frames_from_selected():
            if count == 0:
                frame.select()
                return
            if re.search(r'\brun_in_place\b', frame.name() or ''):
                count -= 1

    def restore(self):
        unwinder.hide()
        if self.before is not None and self.kept.thread is not None:
            self.kept.thread.switch()
            unwinder.shown = self.before
            gdb.invalidate_cached_frames()
        self.kept.__exit__()

    def __exit__(self, *_):
        if not self.stays:
            self.restore()


def task_at(body):
    """What a goroutine calls that has not begun, from the symbol of the code that starts it."""
    text = gdb.execute('info symbol %#x' % body, to_string=True)
    if text.startswith('No symbol'):
        return '%#x' % body
    text = re.sub(r'( \+ \d+)? in section .*', '', text).strip()
    while text.startswith('magpie::') and '<' in text:  # the library's code is a template
        text = template_argument(text)
    return text


def template_argument(text):
    begin = text.index('<') + 1
    depth = 0
    for at in range(begin, len(text)):
        if text[at] in '>,' and depth == 0:
            return text[begin:at]
        depth += {'<': 1, '(': 1, '{': 1, '>': -1, ')': -1, '}': -1}.get(text[at], 0)
    return text[begin:]


def frames_from_selected():
    frame = gdb.selected_frame()
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        yield frame
        try:
            frame = frame.older()
        except gdb.error:  # a stack that cannot be read any further
            return


def place_of(frame):
    if frame.type() == gdb.SIGTRAMP_FRAME:
        return '<signal handler called>'
    place = frame.find_sal()
    name = frame.name() or '%#x' % frame.pc()
    if place.symtab is None:
        return name
    return '%s at %s:%d' % (name, place.symtab.filename.split('/')[-1], place.line)


# Functions and files between a goroutine's own code and the wait.
LIBRARY = re.compile(r'(magpie|std|__gnu_cxx|__cxxabiv1)::|magpie_|__|syscall|futex|pthread_|'
                     r'epoll_|clock_nanosleep|nanosleep|abort$|raise$|gsignal$')
HEADERS = re.compile(r'/include/(magpie|c\+\+)/')


def library_sources():
    """Where the library's sources are, as its debug information says, or None."""
    loop = address_of('magpie::sched::loop')
    symtab = gdb.find_pc_line(loop).symtab if loop is not None else None
    if symtab is None or not symtab.filename.endswith('sched/core/loop.cc'):
        return None
    return symtab.filename[:-len('sched/core/loop.cc')]


def is_library(frame, sources):
    name = frame.name()
    if name is None or LIBRARY.match(name) or frame.type() == gdb.SIGTRAMP_FRAME:
        return True
    symtab = frame.find_sal().symtab
    if symtab is None:
        return False
    return HEADERS.search(symtab.filename) is not None or (
        sources is not None and symtab.filename.startswith(sources))


def where(snapshot, g):
    """The innermost place in the program's own code."""
    if not g.stack and g.m is None:
        return 'will call %s' % task_at(g.body)
    try:
        with Looking(snapshot, g):
            sources = library_sources()
            for frame in frames_from_selected():
                if not is_library(frame, sources):
                    return place_of(frame)
            return place_of(gdb.selected_frame())
    except (gdb.error, gdb.GdbError) as error:
        return '(%s)' % error


def chosen(snapshot, text):
    """Goroutines whose line has the text, each with its place. Without a text, the first ones."""
    found = snapshot.goroutines
    if not text and len(found) > MOST_LISTED:
        print('The first %d of %d goroutines; "info goroutines TEXT" looks at all.'
              % (MOST_LISTED, len(found)))
        found = found[:MOST_LISTED]
    for g in found:
        place = where(snapshot, g)
        if not text or text in '%s %s' % (g.title(), place):
            yield g, place


# ---- commands


class InfoGoroutines(gdb.Command):
    """List goroutines: number, state and why it waits, thread, name, and where it is.

Usage: info goroutines [TEXT]
Only the lines that have TEXT in them. "Where" is the innermost place outside the library."""

    def __init__(self):
        super().__init__('info goroutines', gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        snapshot = Snapshot()
        rows = [('', 'Id', 'State', 'Thread', 'Name', 'Where')]
        shown = unwinder.shown
        for g, place in chosen(snapshot, argument.strip()):
            mark = '*' if shown is not None and shown.g.id == g.id else ''
            thread = ''
            if g.m is not None:
                thread = 'M%d' % g.m.number
                if g.m.thread is not None:
                    thread += ' (thread %d)' % g.m.thread.num
            rows.append((mark, str(g.id), g.status(), thread, g.name, place))
        if len(rows) == 1:
            print('No goroutines.')
        else:
            print_table(rows)


class InfoPs(gdb.Command):
    """List the Ps, with their holders and queues, the global queue, and threads without a P.

Usage: info ps"""

    def __init__(self):
        super().__init__('info ps', gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        snapshot = Snapshot()
        rows = [('P', 'State', 'Thread', 'Runs', 'Next', 'Queue')]
        holders = set()
        for p in snapshot.ps():
            runs = next_one = thread = ''
            if p.m is not None:
                holders.add(p.m.address)
                thread = thread_text(p.m)
                runs = snapshot.number(p.m.current) if p.m.current else 'searches'
            if p.next:
                next_one = snapshot.number(p.next)
            rows.append((str(p.index), p.state, thread, runs, next_one,
                         snapshot.numbers(p.queue)))
        print_table(rows)
        for line in ('usual', 'urgent', 'stopped'):
            waiting = snapshot.line(line)
            if waiting:
                print('Global queue, %s: %s' % (line, snapshot.numbers(waiting)))
        rows = [('Thread', 'Without a P')]
        for m in snapshot.ms:
            if m.address not in holders:
                rows.append((thread_text(m), self.doing(snapshot, m)))
        if len(rows) > 1:
            print_table(rows)

    @staticmethod
    def doing(snapshot, m):
        if m.in_poller:
            return 'sleeps in the poller'
        if m.asleep:
            return 'sleeps'
        if not m.current:
            return 'between two Ps' if m.tid else 'is being made'
        g = snapshot.by_address.get(m.current)
        return g.title() if g is not None else 'ends'


def thread_text(m):
    known = 'thread %d' % m.thread.num if m.thread is not None else 'unknown to gdb'
    return 'M%d (%s, tid %d)' % (m.number, known, m.tid)


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print('  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


class GoroutineCommand(gdb.Command):
    """Look at a goroutine, or run a command there and come back.

Usage: goroutine [N [COMMAND]]
Without N: tells which goroutine is looked at. With N: bt, up, frame, info locals and the like are
about that goroutine, until the program goes on or "goroutine back". To step, go back first."""

    def __init__(self):
        super().__init__('goroutine', gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)

    def invoke(self, argument, from_tty):
        words = argument.split(None, 1)
        if not words:
            return self.tell()
        snapshot = Snapshot()
        g = snapshot.find(words[0])
        if len(words) == 2:
            print(g.title())
            with Looking(snapshot, g):
                gdb.execute(words[1], from_tty)
            return None
        remember_thread()
        with Looking(snapshot, g, stays=True):
            print('[Looking at %s]' % g.title())
            gdb.execute('frame')
        return None

    @staticmethod
    def tell():
        if unwinder.shown is not None:
            print('[Looking at %s]' % unwinder.shown.g.title())
            return
        snapshot = Snapshot()
        thread = gdb.selected_thread()
        for g in snapshot.goroutines:
            if g.m is not None and thread is not None and g.m.tid == thread.ptid[1]:
                print('[Thread %d runs %s]' % (thread.num, g.title()))
                return
        print('[The selected thread runs no goroutine]')


came_from = None  # the thread and level that "goroutine back" goes to


def remember_thread():
    global came_from
    if came_from is None:
        kept = ThreadKept()
        kept.__enter__()
        came_from = kept


class GoroutineBack(gdb.Command):
    """Go back to the thread and frame that were selected before "goroutine N".

Usage: goroutine back"""

    def __init__(self):
        super().__init__('goroutine back', gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        global came_from
        unwinder.hide()
        if came_from is not None:
            kept, came_from = came_from, None
            kept.__exit__()
        gdb.execute('frame')


class GoroutineApply(gdb.Command):
    """Run a command for several goroutines.

Usage: goroutine apply all COMMAND
       goroutine apply 3 7-9 COMMAND"""

    def __init__(self):
        super().__init__('goroutine apply', gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = argument.split()
        snapshot = Snapshot()
        wanted = []
        if words[:1] == ['all']:
            wanted = snapshot.goroutines
            words = words[1:]
        else:
            while words and re.fullmatch(r'\d+(-\d+)?', words[0]):
                first, _, last = words.pop(0).partition('-')
                wanted += [g for g in snapshot.goroutines
                           if int(first) <= g.id <= int(last or first)]
        if not words:
            raise gdb.GdbError('Usage: goroutine apply all|NUMBERS COMMAND')
        for g in wanted:
            print('\n' + g.title())
            try:
                with Looking(snapshot, g):
                    gdb.execute(' '.join(words), from_tty)
            except (gdb.error, gdb.GdbError) as error:
                print(error)


class GoroutineStacks(gdb.Command):
    """Show the stacks of all goroutines. Goroutines with equal stacks are shown together.

Usage: goroutine stacks [TEXT]
Only goroutines that have TEXT in their line of "info goroutines"."""

    def __init__(self):
        super().__init__('goroutine stacks', gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        snapshot = Snapshot()
        alike = collections.OrderedDict()
        for g, place in chosen(snapshot, argument.strip()):
            try:
                with Looking(snapshot, g):
                    frames = tuple(place_of(frame) for frame in frames_from_selected())
            except (gdb.error, gdb.GdbError):
                frames = (place,)
            alike.setdefault((g.status(), frames), []).append(g)
        for (status, frames), group in sorted(alike.items(), key=lambda one: -len(one[1])):
            numbers = snapshot.numbers([g.address for g in group])
            print('%d goroutine%s [%s]: %s'
                  % (len(group), '' if len(group) == 1 else 's', status, numbers))
            for frame in frames:
                print('    ' + frame)
            print()


def forget(_):
    """The program goes on, or is another one."""
    global came_from
    came_from = None
    unwinder.hide()


gdb.events.cont.connect(forget)
gdb.events.exited.connect(forget)
InfoGoroutines()
InfoPs()
GoroutineCommand()
GoroutineBack()
GoroutineApply()
GoroutineStacks()
