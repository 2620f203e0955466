// buffered_test.cc: lines over TLS.
#include <magpie/magpie.h>
#include <magpie/net/buffered.h>
#include <magpie/net/tls.h>

#include <string>

#include "support/certificate.h"
#include "support/net_test.h"

namespace magpie {
namespace {

using support::certificate;

RT_TEST(BufferedTls, LinesGoBothWays) {
  net::TlsListener listener = net::TlsListener::bind("127.0.0.1:0", certificate().server());
  JoinHandle<void> server = spawn([&] {
    net::TlsConn conn = listener.accept();
    net::BufferedReader reader(conn);
    net::BufferedWriter writer(conn);
    for (std::string_view line : reader.lines()) {
      writer.write("<" + std::string(line) + ">\r\n");
      if (reader.buffered().empty()) writer.flush();
    }
    writer.flush();
    conn.shutdown_write();
  });
  net::TlsConn conn = net::TlsConn::connect(
      "localhost:" + std::to_string(listener.local_address().port()), certificate().client());
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i) + "\n";
  JoinHandle<void> writing = spawn([&] {
    conn.write(text);
    conn.shutdown_write();
  });
  net::BufferedReader reader(conn);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(reader.read_line(), "<line " + std::to_string(i) + ">");
  EXPECT_EQ(reader.read_line(), std::nullopt);
}

}  // namespace
}  // namespace magpie
