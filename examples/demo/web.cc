#include "web.h"

#include <signal.h>

#include <cstdio>
#include <exception>

#include <magpie/magpie.h>

#include "load.h"

#if DEMO_HAS_WEB
#include <magpie/debug_server.h>
#endif

namespace demo {

#if DEMO_HAS_WEB

namespace {

// Says which phase begins, and cancels the load at Ctrl-C.
void watch(Progress& progress, const magpie::Chan<int>& signals, const magpie::Chan<void>& over) {
  int announced = -1;
  for (bool ends = false; !ends;) {
    magpie::select(
        magpie::on_recv(signals, [&](std::optional<int>) { progress.cancel = ends = true; }),
        magpie::on_recv(over, [&](bool) { ends = true; }),
        magpie::on_timeout(std::chrono::milliseconds(100), [] {}));
    const int phase = progress.phase;
    if (phase == announced || phase < 0) continue;
    announced = phase;
    std::printf("%d  %s\n", phase + 1, kPhases[static_cast<std::size_t>(phase)]);
    std::fflush(stdout);
  }
}

}  // namespace

int run_web(int rounds) {
  magpie::run([rounds] {
    const magpie::debug::Server pages = magpie::debug::serve();
    std::printf("open %s in a browser%s\n", pages.url().c_str(),
                rounds == 0 ? "; Ctrl-C ends" : "");
    std::fflush(stdout);
    Progress progress;
    const magpie::Signals signals({SIGINT, SIGTERM});
    const magpie::Chan<void> over;
    auto watcher = magpie::spawn([&] { watch(progress, signals.channel(), over); });
    for (int i = 0; !progress.cancel && (rounds == 0 || i < rounds); ++i) run_load(progress);
    over.close();
    watcher.join();
  });
  return 0;
}

#else

int run_web(int) {
  std::fprintf(stderr, "magpie_demo: --web needs magpie::view, which was left out of this build\n");
  return 1;
}

#endif

}  // namespace demo
