// The component dns, as an outside program uses it.

#include <magpie/magpie.h>
#include <magpie/net.h>
#include <magpie/net/dns.h>

#include <memory>

using namespace magpie;

int main() {
  return run([] {
    net::set_resolver(std::make_shared<net::DnsResolver>());
    return net::resolve("127.0.0.1").empty() || net::resolve("localhost").empty() ? 1 : 0;
  });
}
