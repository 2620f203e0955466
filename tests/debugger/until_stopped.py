# Goes from breakpoint to breakpoint until a loop is stopped there, and then removes them.
import gdb

for _ in range(150):
    if 'stopped: with its thread' in gdb.execute('info goroutines stopped', to_string=True):
        break
    gdb.execute('continue', to_string=True)
gdb.execute('delete')
