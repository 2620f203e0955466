// main.cc: the service's life: start, serve, end when told to.
#include <magpie/http.h>
#include <magpie/magpie.h>

#include <csignal>
#include <exception>

#include "api.h"
#include "config.h"
#include "log.h"

int main() {
  using namespace notes;
  start_logging();
  magpie::Signals signals({SIGTERM, SIGINT});
  try {
    const Config config;
    return magpie::run([&] {
      Api api(config, config.database.empty()
                          ? keep_in_memory()
                          : open_postgres(config.database, config.database_connections));
      magpie::http::Server server;
      api.add_to(server);
      server.listen(config.listen);
      log_info("listening", {{"address", server.local_address().to_string()}});
      flush_log();
      const bool all_ended = server.run_until(signals, config.grace);
      log_info("stopped", {{"all_requests_ended", all_ended}});
      flush_log();
      return all_ended ? 0 : 1;
    });
  } catch (const std::exception& error) {
    log_error("cannot start", {{"error", error.what()}});
    return 1;
  }
}
